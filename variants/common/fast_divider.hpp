// Division by a value that is known at launch, without the GPU's division routine (about 100 instructions
// in 64 bits): a high product, an addition and a shift.
//
// Granlund and Montgomery, "Division by invariant integers using multiplication" (PLDI 1994): with
// shift = ceil(log2 d) and multiplier = floor(2^64 (2^shift - d) / d) + 1,
// floor(i / d) = floor((high(multiplier i) + i) / 2^shift) for every 64-bit i.
#pragma once

#include <bit>
#include <cstdint>

#include "variants/common/kernel.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// For indices below 2^63, where the sum of the formula cannot wrap.
class FastDivider {
 public:
  struct Result {
    std::int64_t quotient, remainder;
  };

  /// divisor >= 1.
  explicit FastDivider(std::int64_t divisor) : divisor_(divisor) {
    const auto d = static_cast<std::uint64_t>(divisor);
    shift_ = static_cast<int>(std::bit_width(d - 1));
    const unsigned __int128 excess = (static_cast<unsigned __int128>(1) << shift_) - d;
    multiplier_ = static_cast<std::uint64_t>((excess << 64) / d) + 1;
  }

  __device__ __forceinline__ Result divide(std::int64_t index) const {
    const auto i = static_cast<std::uint64_t>(index);
    const auto quotient = static_cast<std::int64_t>((__umul64hi(multiplier_, i) + i) >> shift_);
    return {quotient, index - quotient * divisor_};
  }

 private:
  std::int64_t divisor_;
  std::uint64_t multiplier_;
  int shift_;
};

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
