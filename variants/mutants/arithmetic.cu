// Mutants that compute something else: a step left out, done twice, done coarsely or at the wrong place.

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "variants/mutants/mistaken_kernel.hpp"

namespace convmish {
namespace {

// --- outputs that are not computed ----------------------------------------------------------------------

struct Zeros : NoMistake {
  static __device__ float activation(float) { return 0.0f; }
};
struct NothingWritten : NoMistake {
  static __device__ bool writes(const Shape&, const OutputIndex&) { return false; }
};
struct LastColumnUnwritten : NoMistake {
  static __device__ bool writes(const Shape& shape, const OutputIndex& at) { return at.q != shape.q() - 1; }
};
struct LastRowUnwritten : NoMistake {
  static __device__ bool writes(const Shape& shape, const OutputIndex& at) { return at.p != shape.p() - 1; }
};
struct LastChannelUnwritten : NoMistake {
  static __device__ bool writes(const Shape& shape, const OutputIndex& at) { return at.k != shape.k - 1; }
};
struct LastImageUnwritten : NoMistake {
  static __device__ bool writes(const Shape& shape, const OutputIndex& at) { return at.n != shape.n - 1; }
};
/// Two neighbouring columns a thread, and the pair that an odd q cuts in half is given up.
struct HalfPairUnwritten : NoMistake {
  static __device__ bool writes(const Shape& shape, const OutputIndex& at) {
    return at.q / 2 * 2 + 1 < shape.q();
  }
};

// --- the convolution ------------------------------------------------------------------------------------

struct BiasLeftOut : NoMistake {
  static __device__ float bias(const float*, std::int64_t) { return 0.0f; }
};
struct BiasOfPreviousChannel : NoMistake {
  static __device__ float bias(const float* bias, std::int64_t k) { return bias[k > 0 ? k - 1 : 0]; }
};
struct FilterTransposed : NoMistake {
  static __device__ int tap(int r, int s) { return s * kFilterSize + r; }
};
/// What mathematics calls a convolution.
struct FilterFlipped : NoMistake {
  static __device__ int tap(int r, int s) { return kTaps - 1 - (r * kFilterSize + s); }
};
struct LastTapDropped : NoMistake {
  static __device__ bool takes(int r, int s) { return r * kFilterSize + s < kTaps - 1; }
};
struct ChannelTailDropped : NoMistake {
  static __device__ std::int64_t channels(std::int64_t c) { return c / 8 * 8; }
};

// --- rounding -------------------------------------------------------------------------------------------

/// Rounds a finite value to nearest even with `kDropped` bits fewer.
template <int kDropped>
__device__ float rounded(float value) {
  if (!(fabsf(value) <= FLT_MAX)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kUnit = 1u << kDropped;
  return std::bit_cast<float>((bits + kUnit / 2 - 1 + (bits >> kDropped & 1)) & ~(kUnit - 1));
}

struct Tf32Multiplicands : NoMistake {
  static __device__ float multiplicand(float value) { return rounded<13>(value); }
};
struct Bf16DeclaredTf32 : NoMistake {
  static constexpr MathClass kDeclared = MathClass::tf32;
  static __device__ float multiplicand(float value) { return rounded<16>(value); }
};
/// The class lets multiplicands be rounded, not the sum.
struct Fp16Accumulation : NoMistake {
  static constexpr MathClass kDeclared = MathClass::fp16;
  static __device__ float multiplicand(float value) { return rounded<13>(value); }
  static __device__ float kept(float sum) { return rounded<13>(sum); }
};

// --- the activation -------------------------------------------------------------------------------------

struct MishOnce : NoMistake {
  static __device__ float activation(float z) { return mish(z); }
};
struct MishThrice : NoMistake {
  static __device__ float activation(float z) { return mish(mish_of_mish(z)); }
};
struct ReluForSecondMish : NoMistake {
  static __device__ float activation(float z) {
    const float m = mish(z);
    return m < 0.0f ? 0.0f : m;
  }
};
/// e^softplus overflows with e^z: the quotient is NaN above 88.
struct SoftplusUnclamped : NoMistake {
  static __device__ float mish_by_softplus(float x) {
    const float softplus = log1pf(expf(x));
    if (softplus < 1.0f) return x * tanhf(softplus);  // where the difference below would cancel
    const float growing = expf(softplus), shrinking = expf(-softplus);
    return x * ((growing - shrinking) / (growing + shrinking));
  }
  static __device__ float activation(float z) { return mish_by_softplus(mish_by_softplus(z)); }
};
/// e (e + 2) overflows, and n / (n + 2) with it: NaN above 44.
struct ExponentialUnclamped : NoMistake {
  static __device__ float mish_by_exponential(float x) {
    const float e = expf(x), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
  }
  static __device__ float activation(float z) { return mish_by_exponential(mish_by_exponential(z)); }
};
struct TailCut : NoMistake {
  static __device__ float activation(float z) { return z < -20.0f ? 0.0f : mish_of_mish(z); }
};
/// The degree-5 fit of mish o mish at Chebyshev nodes of [-1.5, 1.5]: within 1.4e-3 there.
struct Polynomial : NoMistake {
  static __device__ float activation(float z) {
    if (!(fabsf(z) <= 1.5f)) return mish_of_mish(z);
    float sum = -0.0165069030f;
    sum = fmaf(sum, z, -0.0251019721f);
    sum = fmaf(sum, z, 0.0889861623f);
    sum = fmaf(sum, z, 0.311544136f);
    sum = fmaf(sum, z, 0.365552190f);
    return fmaf(sum, z, -0.000230663949f);
  }
};

template <class Mistake>
Variant mistaken(const char* name, const char* summary) {
  return mutant(name, summary, prepare_mistaken<Mistake>, Mistake::kDeclared);
}

const RegisterVariant registered[] = {
    {mistaken<Zeros>("zeros", "every output is 0")},
    {mistaken<NothingWritten>("nothing_written", "no output is written")},
    {mistaken<LastColumnUnwritten>("last_column_unwritten", "column q-1 is not written")},
    {mistaken<LastRowUnwritten>("last_row_unwritten", "row p-1 is not written")},
    {mistaken<LastChannelUnwritten>("last_channel_unwritten", "channel k-1 is not written")},
    {mistaken<LastImageUnwritten>("last_image_unwritten", "image n-1 is not written")},
    {mistaken<HalfPairUnwritten>("half_pair_unwritten", "the pair of columns that an odd q cuts is skipped")},
    {mistaken<BiasLeftOut>("bias_left_out", "the bias is not added")},
    {mistaken<BiasOfPreviousChannel>("bias_of_previous_channel", "channel k gets the bias of k-1")},
    {mistaken<FilterTransposed>("filter_transposed", "r and s of the filter are swapped")},
    {mistaken<FilterFlipped>("filter_flipped", "the filter is turned by 180 degrees")},
    {mistaken<LastTapDropped>("last_tap_dropped", "tap r2 s2 is left out")},
    {mistaken<ChannelTailDropped>("channel_tail_dropped", "channels past the last block of 8 are left out")},
    {mistaken<Tf32Multiplicands>("tf32_declared_fp32", "multiplicands rounded to TF32, declared fp32")},
    {mistaken<Bf16DeclaredTf32>("bf16_declared_tf32", "multiplicands rounded to bf16, declared tf32")},
    {mistaken<Fp16Accumulation>("fp16_accumulation", "the sum is kept in 11 bits, declared fp16")},
    {mistaken<MishOnce>("mish_once", "one Mish")},
    {mistaken<MishThrice>("mish_thrice", "three Mishes")},
    {mistaken<ReluForSecondMish>("relu_for_second_mish", "ReLU in place of the second Mish")},
    {mistaken<SoftplusUnclamped>("softplus_unclamped", "e^softplus overflows: NaN above 88")},
    {mistaken<ExponentialUnclamped>("exponential_unclamped", "e (e + 2) overflows: NaN above 44")},
    {mistaken<TailCut>("tail_cut", "0 below z = -20, where the result is not")},
    {mistaken<Polynomial>("polynomial", "degree-5 polynomial for both Mishes on [-1.5, 1.5]")},
};

}  // namespace
}  // namespace convmish
