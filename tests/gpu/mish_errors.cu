#include <algorithm>
#include <bit>
#include <cmath>

#include "check/acceptance.hpp"
#include "gpu/check.hpp"
#include "tests/gpu/mish_errors.hpp"
#include "variants/common/device_memory.hpp"
#include "variants/common/hopper_mish.cuh"
#include "variants/common/mish.hpp"

namespace convmish {
namespace {

constexpr int kThreads = 256, kBlocks = 4096;
constexpr std::uint64_t kInputs = std::uint64_t{1} << 32;

/// A maximum and where it is, ordered by the maximum: non-negative floats order as their bits.
using Worst = unsigned long long;
struct Result {
  Worst normal, outside, ratio;
  unsigned long long wrong_kind;
};

__device__ Worst worst(double error, float at) {
  return Worst{__float_as_uint(static_cast<float>(error))} << 32 | __float_as_uint(at);
}

template <Activation kActivation>
__device__ float evaluate(float x) {
  if constexpr (kActivation == Activation::mish) {
    return mish(x);
  } else if constexpr (kActivation == Activation::mish_of_mish) {
    return mish_of_mish(x);
  } else {
    float value[1] = {x * hopper::kLog2E};
    hopper::mish_of_mish_of_ln2(value);
    return value[0];
  }
}

template <Activation kActivation>
__device__ void judge_input(float x, Result& result) {
  constexpr bool kTwice = kActivation != Activation::mish;
  if (kActivation == Activation::epilogue && fabsf(x) >= 0x1p126f && !isinf(x)) return;
  const float found = evaluate<kActivation>(x);
  if (isnan(x) || isinf(x)) {
    // At -Inf NaN is as right as the limit.
    const bool right = isnan(x) ? isnan(found)
                       : x > 0  ? isinf(found) && found > 0
                                : isnan(found) || found == 0;
    result.wrong_kind += !right;
    return;
  }
  const double expected = kTwice ? activation64(x) : mish64(x);
  const double error = fabs(found - expected);
  result.wrong_kind += !isfinite(found);
  if (kTwice && (kActivation != Activation::epilogue || x > -20))
    result.ratio = max(result.ratio, worst(judge(found, x, 0, AcceptanceRule{}).ratio, x));
  constexpr float kLeastNormal = 0x1p-126f, kLeastInput = -86.9f;
  if (fabs(expected) < kLeastNormal || x < kLeastInput) {
    result.outside = max(result.outside, worst(error / kLeastNormal, x));
  } else {
    result.normal = max(result.normal, worst(ldexp(error, 23 - ilogb(expected)), x));
  }
}

template <Activation kActivation>
__global__ void __launch_bounds__(kThreads) measure_kernel(Result* total) {
  Result result{};
  for (std::uint64_t bits = blockIdx.x * kThreads + threadIdx.x; bits < kInputs; bits += kBlocks * kThreads)
    judge_input<kActivation>(__uint_as_float(static_cast<unsigned>(bits)), result);
  atomicMax(&total->normal, result.normal);
  atomicMax(&total->outside, result.outside);
  atomicMax(&total->ratio, result.ratio);
  atomicAdd(&total->wrong_kind, result.wrong_kind);
}

double error_of(Worst worst) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(worst >> 32));
}

}  // namespace

ActivationErrors measure_activation_errors(Activation activation) {
  const DeviceMemory memory = allocate_device_memory(sizeof(Result));
  auto* const total = static_cast<Result*>(memory.get());
  CONVMISH_CHECK_CUDA(cudaMemset(total, 0, sizeof(Result)));
  switch (activation) {
    case Activation::mish:
      measure_kernel<Activation::mish><<<kBlocks, kThreads>>>(total);
      break;
    case Activation::mish_of_mish:
      measure_kernel<Activation::mish_of_mish><<<kBlocks, kThreads>>>(total);
      break;
    case Activation::epilogue:
      measure_kernel<Activation::epilogue><<<kBlocks, kThreads>>>(total);
      break;
  }
  CONVMISH_CHECK_CUDA(cudaGetLastError());
  Result result;
  CONVMISH_CHECK_CUDA(cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost));
  return {
      .normal = {error_of(result.normal), std::bit_cast<float>(static_cast<std::uint32_t>(result.normal))},
      .outside = error_of(result.outside),
      .ratio = error_of(result.ratio),
      .wrong_kind = result.wrong_kind};
}

}  // namespace convmish
