// Multiplicands as the formats of tensor cores round them, the same bits on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "check/fill.hpp"
#include "core/shape.hpp"

namespace convmish {

/// What a kernel does to x and the filter before it multiplies.
enum class Multiplicands {
  exact,           // the floats as they are
  tf32,            // to the nearest, ties away from zero (cvt.rna, the only rounding before sm_90)
  tf32_even,       // to the nearest, ties to even
  tf32_truncated,  // what an MMA does to floats that were not converted
  bf16,            // to the nearest, ties to even
  fp16,            // the same, with fp16's subnormals and infinities
};

/// Rounds off the lowest `bits` of the significand; a carry may reach the exponent, and so infinity.
CONVMISH_HD inline float drop_low_bits(float value, int bits, bool ties_to_even) {
  std::uint32_t word;
  memcpy(&word, &value, sizeof word);
  if ((word & 0x7f800000u) == 0x7f800000u) return value;  // NaN and infinity
  const std::uint32_t half = std::uint32_t{1} << (bits - 1);
  const bool even_below = ties_to_even && (word >> bits & 1) == 0;
  word += even_below ? half - 1 : half;
  return float_from_bits(word & ~(2 * half - 1));
}

CONVMISH_HD inline float round_multiplicand(Multiplicands to, float value) {
  switch (to) {
    case Multiplicands::exact:
      return value;
    case Multiplicands::tf32:
      return drop_low_bits(value, 13, false);
    case Multiplicands::tf32_even:
      return drop_low_bits(value, 13, true);
    case Multiplicands::tf32_truncated: {
      std::uint32_t word;
      memcpy(&word, &value, sizeof word);
      return float_from_bits(word & ~0x1fffu);
    }
    case Multiplicands::bf16:
      return drop_low_bits(value, 16, true);
    case Multiplicands::fp16: {
      // Below 2^-14 fp16 has a fixed spacing, 2^-24: adding and subtracting 1.5 x 2^-1 rounds to it.
      if (fabsf(value) < 0x1p-14f) return (value + 0.75f) - 0.75f;
      const float rounded = drop_low_bits(value, 13, true);
      return fabsf(rounded) > 65504.0f ? copysignf(HUGE_VALF, rounded) : rounded;
    }
  }
  return value;
}

}  // namespace convmish
