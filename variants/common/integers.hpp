// Whether floats are integers: what cudnn_rounding_probe decides by, where no GPU is needed to test it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace convmish {

/// NaN is none; an infinity, being its own nearest integer, is one.
inline bool are_integers(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return value == std::nearbyint(value); });
}

}  // namespace convmish
