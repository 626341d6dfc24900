// mish(mish(z)) for the epilogues of tensor-core kernels, with as few instructions of the FMA pipe as
// possible.
//
// Beside wgmma the FMA pipe is the scarce one (it shares register bandwidth and power with the tensor cores)
// and special functions are nearly free. With q = e^-x and m = q + 1/2
//
//   mish(x) = x m / (m^2 + 1/4)
//
// which has no cancellation, so that the negative tail x e^x keeps its relative accuracy.
//
// Domain: |z| < 2^126, or NaN, or infinite. NaN stays NaN, +Inf stays +Inf, -Inf gives NaN. Each output
// depends on its own z alone: a reciprocal shared by two outputs would let a NaN reach the neighbour.
//
// Error, in units of 2^-24 of the result, with ex2.approx within 4 and rcp.approx within 2: the argument
// z log2 e costs |z| (0.7 from rounding, at worst, and 0.2 from the constant), the rest below 14. So below
// 32, which is what src/check/acceptance.hpp allows, where an output is judged by its activation alone
// (|z| < 20); farther down, the rounding of the multiplicands is judged, and is larger by far. Below z = -87,
// where e^z is subnormal, the result is 0.
#pragma once

#include "variants/common/hopper_ptx.cuh"

namespace convmish::hopper {

inline constexpr float kLog2E = 1.44269504f;

/// T = m / (m^2 + 1/4) for m in [1/2, inf]. m is up to 2^126 and its square would overflow, so the quotient
/// is taken of 2^-125 m and 2^-125 (m^2 + 1/4): in that form it reaches 0 only where mish(x) is subnormal.
/// The power of two is an integer subtraction, on the ALU pipe; of m = inf it makes a finite number, and the
/// infinite denominator then gives 0, of NaN too, and the denominator then gives NaN.
__device__ __forceinline__ float mish_factor_unbounded(float m) {
  const float scaled = __int_as_float(__float_as_int(m) - (125 << 23));
  return scaled * ptx::rcp_approx(__fmaf_rn(m, scaled, 0x1p-127f));
}

/// values[i] = mish(mish(ln 2 values[i])): in units of ln 2, e^-z needs no multiplication. Several at a time,
/// so that the latencies overlap.
template <int kCount>
__device__ __forceinline__ void mish_of_mish_of_ln2(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= mish_factor_unbounded(ptx::ex2_approx(-values[i]) + 0.5f);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    // mish >= -0.31, so that q <= 1.37 here and squares are safe. m in units of ln 2 as well: T then carries
    // the 1 / log2 e that takes the result back.
    const float m = __fmaf_rn(ptx::ex2_approx(-values[i]), kLog2E, 0.5f * kLog2E);
    values[i] *= m * ptx::rcp_approx(__fmaf_rn(m, m, 0.25f * kLog2E * kLog2E));
  }
}

}  // namespace convmish::hopper
