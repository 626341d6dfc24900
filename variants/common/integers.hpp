// Whether floats are integers: what cudnn_rounding_probe decides by, where no GPU is needed to test it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace convmish {

/// NaN and the infinities are none.
inline bool are_integers(std::span<const float> values) {
  return std::ranges::all_of(
      values, [](float value) { return std::isfinite(value) && value == std::nearbyint(value); });
}

}  // namespace convmish
