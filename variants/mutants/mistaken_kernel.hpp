// The naive kernel with a seam at each step: a mutant changes one step and stays a few lines.
#pragma once

#include <cstdint>

#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

struct OutputIndex {
  std::int64_t n, k, p, q;
};

/// Each step done right. A mistake derives from this and hides the steps that it gets wrong.
struct NoMistake {
  static constexpr MathClass kDeclared = MathClass::fp32;

  /// The input channels that are summed over.
  static __device__ std::int64_t channels(std::int64_t c) { return c; }
  /// The filter's tap that multiplies row r, column s of the window.
  static __device__ int tap(int r, int s) { return r * kFilterSize + s; }
  static __device__ bool takes(int, int) { return true; }
  static __device__ float multiplicand(float value) { return value; }
  /// What is kept of the sum after a multiply-add.
  static __device__ float kept(float sum) { return sum; }
  static __device__ float bias(const float* bias, std::int64_t k) { return bias[k]; }
  static __device__ float activation(float z) { return mish_of_mish(z); }
  static __device__ bool writes(const Shape&, const OutputIndex&) { return true; }
};

template <class Mistake>
struct MistakenKernel {
  static constexpr const char* kName = "mistaken";
  static constexpr unsigned kThreads = 256;
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;

  Shape shape;
  FastDivider by_q, by_p, by_k;
  const float* x;
  const float* filter;
  const float* bias;
  float* y;

  __device__ void operator()(SharedStorage&) const {
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= shape.y_elements()) return;
    const auto [row, q] = by_q.divide(i);
    const auto [plane, p] = by_p.divide(row);
    const auto [n, k] = by_k.divide(plane);
    if (!Mistake::writes(shape, {n, k, p, q})) return;

    float z = 0.0f;
    for (std::int64_t c = 0; c < Mistake::channels(shape.c); ++c)
      for (int r = 0; r < kFilterSize; ++r)
        for (int s = 0; s < kFilterSize; ++s) {
          if (!Mistake::takes(r, s)) continue;
          const float value = x[((n * shape.c + c) * shape.h + p + r) * shape.w + q + s];
          const float weight = filter[(k * shape.c + c) * kTaps + Mistake::tap(r, s)];
          z = Mistake::kept(fmaf(Mistake::multiplicand(value), Mistake::multiplicand(weight), z));
        }
    y[i] = Mistake::activation(z + Mistake::bias(bias, k));
  }
};

template <class Mistake>
MistakenKernel<Mistake> mistaken_kernel(const Problem& problem, const float* x, float* y) {
  const Shape& shape = problem.shape;
  return {shape, FastDivider(shape.q()), FastDivider(shape.p()), FastDivider(shape.k),
          x,     problem.filter,         problem.bias,           y};
}

/// One thread an element.
inline dim3 elementwise_grid(std::int64_t elements, unsigned threads) {
  return dim3(static_cast<unsigned>(divide_up(elements, threads)));
}

template <class Mistake>
Plan prepare_mistaken(const Problem& problem) {
  return {.launch = [problem](const LaunchArgs& args) {
    const auto kernel = mistaken_kernel<Mistake>(problem, args.x, args.y);
    launch_kernel(kernel, elementwise_grid(problem.shape.y_elements(), kernel.kThreads), args.stream);
  }};
}

/// A variant that is wrong on purpose; `selftest` runs it and expects it to be caught.
inline Variant mutant(const char* name, const char* summary, Plan (*prepare)(const Problem&),
                      MathClass declared = MathClass::fp32) {
  return {.name = name,
          .summary = summary,
          .device = kKernelDevice,
          .math = declared,
          .group = Group::mutant,
          .prepare = prepare};
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
