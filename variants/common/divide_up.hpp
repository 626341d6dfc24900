// How many tiles cover an extent.
#pragma once

#include <cstdint>

namespace convmish {

/// a / b rounded up, for a >= 0 and b >= 1.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace convmish
