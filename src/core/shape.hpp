// The problem's dimensions, their limits and the counts that follow from them.
//
//   y = mish(mish(conv2d(x, filter) + bias))     3x3, stride 1, no padding, fp32 tensors
//
//   x       n c h w          filter  k c 3 3          bias  k          y  n k p q
//   p = h - 2,  q = w - 2
//
// The letters are those of cuDNN and CUTLASS. Included by device code: no library headers here.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CONVMISH_HD __host__ __device__
#else
#define CONVMISH_HD
#endif

namespace convmish {

inline constexpr int kFilterSize = 3;  // r = s = 3
inline constexpr int kTaps = kFilterSize * kFilterSize;

/// A valid Shape has n, c, k >= 1 and h, w >= 3, and every tensor's bytes fit in int64 (see
/// check_shape in shape_text.hpp). All counts below are exact for a valid shape.
struct Shape {
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0;

  CONVMISH_HD constexpr std::int64_t p() const { return h - (kFilterSize - 1); }
  CONVMISH_HD constexpr std::int64_t q() const { return w - (kFilterSize - 1); }

  CONVMISH_HD constexpr std::int64_t x_elements() const { return n * c * h * w; }
  CONVMISH_HD constexpr std::int64_t filter_elements() const { return k * c * kTaps; }
  CONVMISH_HD constexpr std::int64_t y_elements() const { return n * k * p() * q(); }
  /// Length of one output's dot product: the gemm_k of implicit GEMM.
  CONVMISH_HD constexpr std::int64_t reduction() const { return c * kTaps; }

  /// Multiply-adds of the direct algorithm; doubles because the largest valid shapes pass int64.
  constexpr double multiply_adds() const {
    return static_cast<double>(y_elements()) * static_cast<double>(reduction());
  }
  constexpr double flops() const { return 2.0 * multiply_adds(); }
  /// Least DRAM traffic of the fused operation: every tensor once.
  constexpr double least_bytes() const {
    return 4.0 * (static_cast<double>(x_elements()) + static_cast<double>(filter_elements()) +
                  static_cast<double>(k) + static_cast<double>(y_elements()));
  }
  constexpr double mish_evaluations() const { return 2.0 * static_cast<double>(y_elements()); }

  constexpr bool operator==(const Shape&) const = default;
};

}  // namespace convmish
