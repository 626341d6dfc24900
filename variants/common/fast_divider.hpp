// Division by a value that is known at launch, without the GPU's division routine (about 100 instructions
// in 64 bits, 30 in 32): a high product, an addition and a shift.
//
// Granlund and Montgomery, "Division by invariant integers using multiplication" (PLDI 1994): of N bits, with
// shift = ceil(log2 d) and multiplier = floor(2^N (2^shift - d) / d) + 1,
// floor(i / d) = floor((high(multiplier i) + i) / 2^shift) for every i of N bits.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "variants/common/kernel.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// For indices below 2^(N - 1), where the sum of the formula cannot wrap. Index: of 64 or of 32 bits.
template <class Index>
class FastDividerOf {
 public:
  struct Result {
    Index quotient, remainder;
  };

  /// divisor >= 1.
  explicit FastDividerOf(Index divisor) : divisor_(divisor) {
    const auto d = static_cast<Unsigned>(divisor);
    shift_ = static_cast<int>(std::bit_width(static_cast<Unsigned>(d - 1)));
    const unsigned __int128 excess = (static_cast<unsigned __int128>(1) << shift_) - d;
    multiplier_ = static_cast<Unsigned>((excess << 8 * sizeof(Index)) / d) + 1;
  }

  __device__ __forceinline__ Result divide(Index index) const {
    const auto i = static_cast<Unsigned>(index);
    const auto quotient = static_cast<Index>((high_product(multiplier_, i) + i) >> shift_);
    return {quotient, index - quotient * divisor_};
  }

 private:
  using Unsigned = std::make_unsigned_t<Index>;

  static __device__ __forceinline__ Unsigned high_product(Unsigned a, Unsigned b) {
    if constexpr (sizeof(Index) == 8)
      return __umul64hi(a, b);
    else
      return static_cast<Unsigned>(std::uint64_t{a} * b >> 32);
  }

  Index divisor_;
  Unsigned multiplier_;
  int shift_;
};

using FastDivider = FastDividerOf<std::int64_t>;

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
