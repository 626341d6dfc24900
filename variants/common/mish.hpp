// The one place of the device activation: mish(x) = x tanh(softplus(x)), in fp32, and mish of mish.
//
// With e = exp(x) and n = e (e + 2):  mish(x) = x n / (n + 2), one exponential and one reciprocal. Nothing
// cancels, so the negative tail x e^x keeps its relative accuracy down to where e^x is subnormal and may
// become 0. For large x the quotient is 1; NaN stays NaN, +Inf stays +Inf, -Inf gives NaN, as
// x tanh(softplus(x)) does in IEEE arithmetic.
//
// Error, in units of 2^-24 of the result, given what PTX promises (ex2.approx.ftz: 2^-22 relative,
// rcp.approx.ftz: 2^-23): at most 13 for mish and 18 for mish of mish, of the 32 that
// src/check/acceptance.hpp allows; on the CPU 6.5 and 7.5. tests/cpu/mish_test.cpp measures both.
// Over every float, on an H200, in units in the last place where e^x is a normal float: 5.93 for mish (at x =
// -6.828) and 8.22 for mish of mish (at x = -12.43), which is 0.59 of what is allowed; NaN and infinities as
// above. tests/gpu/mish_test.cpp measures it:
//   gpu_tests --gtest_filter='MishTest.*'
//
// Cost on the GPU: 10 + 2 special-function instructions for mish, 7 + 2 more for the mish around it. A pass
// over a tensor stays bound by memory only as long as both Mishes take fewer than about 50.
#pragma once

#include <cfloat>
#include <cmath>

#include "variants/common/kernel.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// The operations whose rounding depends on the device.
struct ActivationMath {
  /// 2^x, for x of at most 126; a subnormal result is 0.
  static __device__ __forceinline__ float exp2(float x) {
#if defined(__CUDACC__)
    float result;  // exp2f would add a scaling for subnormal results
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    const float result = std::exp2(x);
    return result < FLT_MIN ? 0.0f : result;
#endif
  }

  /// 1 / x, for x in [1, 2^126].
  static __device__ __forceinline__ float reciprocal(float x) {
#if defined(__CUDACC__)
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return 1.0f / x;
#endif
  }

  static __device__ __forceinline__ float clamp_to_unit(float x) {
#if defined(__CUDACC__)
    return __saturatef(x);  // a modifier of the multiplication before it
#else
    return fminf(fmaxf(x, 0.0f), 1.0f);
#endif
  }
};

inline constexpr float kMishIsIdentity = 20.0f;  // from here on n / (n + 2) is 1 to fp32; n stays finite
inline constexpr float kMishIsZero = -126.0f;    // from here down e^x is below the least float, 2^-149
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147182f;  // 2^-28.4 too large: 4 units of 2^-24 at x = -87

/// x n / (n + 2), given e = exp(x) or, beyond the range where that matters, exp of x clamped.
template <class Math>
__device__ __forceinline__ float mish_from_exp(float x, float e) {
  const float n = e * (e + 2.0f);
  // Clamped, because a reciprocal that is an ulp too large would make an infinity of FLT_MAX.
  return x * Math::clamp_to_unit(n * Math::reciprocal(n + 2.0f));
}

template <class Math = ActivationMath>
__device__ __forceinline__ float mish(float x) {
  // fminf drops a NaN; it comes back with the multiplication by x.
  const float clamped = fmaxf(fminf(x, kMishIsIdentity), kMishIsZero);
  // 2^(x log2 e) alone would be wrong by |x| roundings of the product; `remainder` is what the product
  // missed, and e^remainder is 1 + remainder to fp32.
  const float exponent = clamped * kLog2E;
  const float remainder = fmaf(exponent, -kLn2, clamped);
  const float power = Math::exp2(exponent);
  return mish_from_exp<Math>(x, fmaf(power, remainder, power));
}

/// mish(mish(z)), the operation's activation.
template <class Math = ActivationMath>
__device__ __forceinline__ float mish_of_mish(float z) {
  const float m = mish<Math>(z);
  // m >= -0.31, where the rounding of m log2 e moves mish(m) by less than an ulp: no remainder, no floor.
  return mish_from_exp<Math>(m, Math::exp2(fminf(m, kMishIsIdentity) * kLog2E));
}

/// mish as it is defined, by the math library.
__device__ __forceinline__ float mish_by_definition(float x) {
  return x * tanhf(log1pf(expf(x)));
}

/// The operation's activation in the form that a kernel is compiled for.
template <MishForm kForm>
__device__ __forceinline__ float activation(float z) {
  if constexpr (kForm == MishForm::definition) {
    return mish_by_definition(mish_by_definition(z));
  } else {
    return mish_of_mish(z);
  }
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
