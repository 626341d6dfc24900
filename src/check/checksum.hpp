// A 64-bit checksum that depends on the order of the words and can be summed in any order.
#pragma once

#include <cstdint>

#include "core/shape.hpp"

namespace convmish {

/// The term of word `i`: the two mixed by splitmix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
CONVMISH_HD inline unsigned long long checksum_term(std::int64_t i, std::uint32_t word) {
  std::uint64_t v = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u ^ (std::uint64_t{word} << 20);
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9u;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBu;
  return v ^ (v >> 31);
}

}  // namespace convmish
