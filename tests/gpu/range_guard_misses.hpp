// The range guard of the tensor-core kernels against what it guesses, over every float there is.
#pragma once

#include <cstdint>

namespace convmish {

/// Floats of which convert_and_judge() and split_loses_bits(), variants/common/hopper_operands.cuh, say
/// something different, with one fp16 term a multiplicand and with two.
struct RangeGuardMisses {
  std::uint64_t of_one_term = 0, of_two_terms = 0;
};

RangeGuardMisses count_range_guard_misses();

}  // namespace convmish
