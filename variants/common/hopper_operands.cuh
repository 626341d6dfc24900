// The fp16 operands of the Hopper kernels: their layouts in shared memory, their scales, and the guard that
// tells which inputs fp16 cannot hold.
//
// A multiplicand is written in kTerms fp16 terms: rounded once (1), or split in a high and a low one (2) that
// together hold 22 bits. The low term is 2^11 times what the high one leaves, so that both lie in the same
// range, and the products with one of them count 2^-11.
//
// Implicit GEMM with output channels as wgmma's M and pixels as its N:
//
//   filter  [64 output channels][64 input channels], one such matrix a filter tap, K-major, 128-byte swizzle
//   x       [8 planes of 8 input channels][pixel][8 halves], K-major, no swizzle: a pixel is 16 bytes, the
//           granule of a descriptor's start address, so that filter tap (r, s) is the same tile read from a
//           start shifted by r rows and s pixels
//
// Range: fp16 holds 11 significant bits from 2^-14 to 65504. x is scaled by 2^8, so full precision reaches
// from 2^-22 to 255.9; each output channel's filter by the power of two that brings its largest weight to
// [2^14, 2^15), so that weights down to 2^-28 of it keep full precision. What falls outside is seen here, and
// recomputed in fp32 (hopper_recompute.cuh).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "core/shape.hpp"
#include "variants/common/hopper_ptx.cuh"

namespace convmish::hopper {

inline constexpr int kBlockK = 64;        // output channels a warpgroup computes: wgmma's M
inline constexpr int kBlockC = 64;        // input channels staged together
inline constexpr int kBlockPixels = 128;  // pixels of a warpgroup's tile: wgmma's N
inline constexpr int kPlaneChannels = 8;  // input channels in a granule of 16 bytes
inline constexpr int kPlanes = kBlockC / kPlaneChannels;
inline constexpr int kGranuleBytes = kPlaneChannels * sizeof(__half);
inline constexpr int kStepC = 16;  // input channels a wgmma sums over: its K
inline constexpr int kSteps = kBlockC / kStepC;
inline constexpr int kTapBytes = kBlockK * kBlockC * sizeof(__half);

/// fp32 sums of 64 output channels x kPixels pixels, spread over a warpgroup: thread (warp, lane) holds, for
/// j < kPixels / 8 and e < 2, pixel 8 j + 2 (lane % 4) + e of channels 16 warp + lane / 4 (element 4 j + e)
/// and of the channel 8 farther (element 4 j + 2 + e).
template <int kPixels>
using SumsOf = float[kBlockK * kPixels / 128];
using Accumulator = SumsOf<kBlockPixels>;

/// What takes a sum back to z, in units of ln 2, as mish_of_mish_of_ln2() wants it: z log2 e = sum * scale +
/// bias. Rounded, scale and bias each cost z 2^-24 of its sum or of itself: less than the products' sum does.
struct ChannelAffine {
  float scale, bias;
};

// --- multiplication --------------------------------------------------------------------------------------

__device__ __forceinline__ std::uint64_t filter_descriptor(ptx::SharedAddress tap) {
  return ptx::matrix_descriptor(tap, 16, 8 * kBlockC * sizeof(__half), ptx::Swizzle::b128);
}

__device__ __forceinline__ std::uint64_t pixel_descriptor(ptx::SharedAddress first_pixel,
                                                          std::uint32_t plane_bytes) {
  return ptx::matrix_descriptor(first_pixel, plane_bytes, 8 * kGranuleBytes, ptx::Swizzle::none);
}

/// One filter tap: sums += filter x pixels over 64 input channels. The caller fences, commits and waits.
template <int kPixels = kBlockPixels>
__device__ __forceinline__ void mma_tap(SumsOf<kPixels>& sums, std::uint64_t filter, std::uint64_t pixels,
                                        std::uint32_t plane_bytes, bool first_tap) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    ptx::wgmma_m64k16<kPixels>(sums, filter + ptx::descriptor_step(step * kStepC * sizeof(__half)),
                               pixels + step * ptx::descriptor_step(2 * plane_bytes), !first_tap || step > 0);
}

// --- conversion ------------------------------------------------------------------------------------------

inline constexpr int kXScaleLog2 = 8;
inline constexpr float kXScale = 1 << kXScaleLog2;

/// 2^8 v: an integer addition, on the ALU pipe. What it makes of values from 2^120 on, infinities and NaN is
/// wrong, and zero and subnormals become tiny: fp16 has no other place for those than 0.
__device__ __forceinline__ float scale_x(float v) {
  return __int_as_float(__float_as_int(v) + (kXScaleLog2 << 23));
}

inline constexpr float kLowScale = 0x1p-11f;  // what a low term counts

/// `scaled` in fp16: scaled = terms[0] + 2^-11 terms[1], but for the returned rest. What is subtracted is
/// exact.
template <int kTerms>
__device__ __forceinline__ float split(float scaled, __half (&terms)[kTerms]) {
  terms[0] = __float2half_rn(scaled);
  // Not contracted with the multiplication that scaled: in one step a large value would not become infinite.
  float rest = __fsub_rn(scaled, __half2float(terms[0]));
  if constexpr (kTerms == 2) {
    terms[1] = __float2half_rn(rest / kLowScale);
    rest -= __half2float(terms[1]) * kLowScale;
  }
  return rest;
}

/// Whether splitting costs more than its unit roundoff, 2^-11 or 2^-22. (Written for NaN to be true.)
template <int kTerms>
__device__ __forceinline__ bool split_loses_bits(float scaled) {
  __half terms[kTerms];
  const float rest = split(scaled, terms);
  return !(fabsf(rest) <= (kTerms == 1 ? kLowScale : kLowScale * kLowScale) * fabsf(scaled));
}

/// Watches values go by and tells whether split_loses_bits() is possible for any: a zero never raises it.
class RangeGuard {
 public:
  __device__ __forceinline__ void see(float v) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(largest_) : "f"(fabsf(v)));
    // Magnitudes order as integers. Twice the bits drops the sign, and less 1 sends zero to the far end.
    smallest_ = min(smallest_, 2 * __float_as_uint(v) - 1);
  }
  __device__ __forceinline__ bool raised() const {
    return !(largest_ < kFirstTooLarge) || smallest_ < 2 * kFirstNormalBits - 1;
  }

 private:
  static constexpr float kFirstTooLarge = 65520 / kXScale;                           // rounds to infinity
  static constexpr std::uint32_t kFirstNormalBits = (127 - 14 - kXScaleLog2) << 23;  // of 2^-22
  float largest_ = 0;
  std::uint32_t smallest_ = ~0u;
};

/// Whether split_loses_bits() is true of any value of x. Looks closer only where a RangeGuard is raised.
template <int kTerms, int kCount>
__device__ __forceinline__ bool loses_bits(const float (&values)[kCount]) {
  RangeGuard guard;
#pragma unroll
  for (const float value : values) guard.see(value);
  if (!guard.raised()) return false;
  bool lost = false;
#pragma unroll
  for (const float value : values) lost |= split_loses_bits<kTerms>(value * kXScale);
  return lost;
}

/// Eight channels of one pixel as fp16 terms.
template <int kTerms>
__device__ __forceinline__ void convert_granule(const float (&v)[kPlaneChannels], uint4 (&granules)[kTerms]) {
#pragma unroll
  for (int i = 0; i < kPlaneChannels / 2; ++i) {
    const float scaled[2] = {scale_x(v[2 * i]), scale_x(v[2 * i + 1])};
    const __half2 high = __floats2half2_rn(scaled[0], scaled[1]);
    memcpy(&granules[0].x + i, &high, sizeof high);
    if constexpr (kTerms == 2) {
      const float2 taken = __half22float2(high);
      const __half2 low =
          __floats2half2_rn((scaled[0] - taken.x) / kLowScale, (scaled[1] - taken.y) / kLowScale);
      memcpy(&granules[1].x + i, &low, sizeof low);
    }
  }
}

/// A RangeGuard's first step, two values an instruction: watches granules after their conversion and suspects
/// whatever may have been too large for fp16 or too small. Zeros are suspected as well, for small values
/// became zeros; so on suspicion the values themselves have to be shown to loses_bits().
class GranuleGuard {
 public:
  __device__ __forceinline__ void see(const uint4& granule) {
    for (const std::uint32_t pair : {granule.x, granule.y, granule.z, granule.w}) {
      // Twice the bits drops the sign; what is left orders as the magnitude does.
      largest_ = __viaddmax_u16x2(pair, pair, largest_);
      smallest_ = __viaddmin_u16x2(pair, pair, smallest_);
    }
  }
  __device__ __forceinline__ bool suspects() const {
    const std::uint32_t largest = max(largest_, largest_ << 16), smallest = min(smallest_, smallest_ << 16);
    return largest >= 2u * kInfinityBits << 16 || smallest < 2u * (kFirstNormalBits + 1) << 16;
  }

 private:
  static constexpr std::uint32_t kInfinityBits = 0x7C00, kFirstNormalBits = 0x0400;  // of fp16
  std::uint32_t largest_ = 0, smallest_ = ~0u;
};

/// kCount pixels as granules. Returns whether split_loses_bits() is true of any value. Each step seldom needs
/// the next: zeros are suspected, and multiples of 2^-24 exact, such as many random numbers are.
template <int kTerms, int kCount>
__device__ __forceinline__ bool convert_and_judge(const float (&values)[kCount][kPlaneChannels],
                                                  uint4 (&granules)[kCount][kTerms]) {
  GranuleGuard suspicion;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    convert_granule(values[i], granules[i]);
    suspicion.see(granules[i][0]);
  }
  bool lost = false;
  if (suspicion.suspects())
#pragma unroll
    for (int i = 0; i < kCount; ++i) lost |= loses_bits<kTerms>(values[i]);
  return lost;
}

// --- filter ----------------------------------------------------------------------------------------------

/// Blocks of the repacked filter. Output blocks come in pairs, so that whoever computes two finds both.
inline constexpr int output_blocks(const Shape& shape) {
  return static_cast<int>((shape.k + 2 * kBlockK - 1) / (2 * kBlockK) * 2);
}
CONVMISH_HD constexpr int input_blocks(int c) {
  return (c + kBlockC - 1) / kBlockC;
}

/// The repacked filter: [output block][input block][tap][term], each one matrix as above; 0 beyond k and c.
template <int kTerms_>
struct FilterLayout {
  static constexpr int kTerms = kTerms_;
  int k_blocks, c_blocks;

  explicit FilterLayout(const Shape& shape)
      : k_blocks(output_blocks(shape)), c_blocks(input_blocks(static_cast<int>(shape.c))) {}

  int output_channels() const { return k_blocks * kBlockK; }
  CONVMISH_HD int input_channels() const { return c_blocks * kBlockC; }
  std::int64_t bytes() const { return std::int64_t{k_blocks} * c_blocks * kTaps * kTerms * kTapBytes; }

  /// Of a half.
  __device__ __forceinline__ std::int64_t index(int k, int c, int tap, int term) const {
    const std::int64_t matrix =
        ((std::int64_t{k / kBlockK} * c_blocks + c / kBlockC) * kTaps + tap) * kTerms + term;
    const int row = k % kBlockK, granule = c % kBlockC / kPlaneChannels;
    // The 128-byte swizzle: granules of a row are permuted by its number in its group of 8.
    return matrix * (kBlockK * kBlockC) + row * kBlockC + (granule ^ row % 8) * kPlaneChannels +
           c % kPlaneChannels;
  }
};

}  // namespace convmish::hopper
