// Direct convolution, one output a thread, straight from global memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// What a naive kernel is compiled for.
struct NaiveConfig {
  GridForm grid = GridForm::exact;
  MishForm mish = MishForm::one_exp;
};

template <NaiveConfig kConfig>
struct NaiveConvolution {
  static constexpr const char* kName = "naive";
  static constexpr unsigned kThreads = 256;
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;

  Shape shape;
  std::int64_t outputs, grid_threads;  // of the whole output; of the whole grid
  FastDivider by_q, by_p, by_k;
  const float* x;
  const float* filter;
  const float* bias;
  float* y;

  __device__ __forceinline__ void compute(std::int64_t i) const {
    // Unflatten n k p q, innermost first. Neighbouring threads differ in q, so that loads of x coalesce and
    // those of the filter are one address for nearly every warp.
    const auto [row, q] = by_q.divide(i);
    const auto [plane, p] = by_p.divide(row);
    const auto [n, k] = by_k.divide(plane);

    const std::int64_t x_plane = shape.h * shape.w;
    const float* window = x + n * shape.c * x_plane + p * shape.w + q;
    const float* taps = filter + k * shape.reduction();
    float z = __ldg(bias + k);
    for (std::int64_t c = 0; c < shape.c; ++c) {
      CONVMISH_UNROLL
      for (int r = 0; r < kFilterSize; ++r) {
        CONVMISH_UNROLL
        for (int s = 0; s < kFilterSize; ++s)
          z += __ldg(window + r * shape.w + s) * __ldg(taps + r * kFilterSize + s);
      }
      window += x_plane;
      taps += kTaps;
    }
    y[i] = activation<kConfig.mish>(z);
  }

  __device__ void operator()(SharedStorage&) const {
    std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if constexpr (kConfig.grid == GridForm::exact) {
      if (i < outputs) compute(i);
    } else {
      for (; i < outputs; i += grid_threads) compute(i);
    }
  }
};

/// The plan of a variant that is a NaiveConvolution.
template <NaiveConfig kConfig>
Plan prepare_naive_convolution(const Problem& problem) {
  using Kernel = NaiveConvolution<kConfig>;
  const Shape shape = problem.shape;
  dim3 grid(static_cast<unsigned>(divide_up(shape.y_elements(), Kernel::kThreads)));
  if constexpr (kConfig.grid == GridForm::grid_stride) {
    const int each = launch_geometry<Kernel>(grid).blocks_per_multiprocessor.value_or(1);
    grid.x = std::min(grid.x, static_cast<unsigned>(each * std::max(problem.device->multiprocessors, 1)));
  }
  const auto launch = [=, filter = problem.filter, bias = problem.bias](const LaunchArgs& args) {
    launch_kernel(
        Kernel{shape, shape.y_elements(), std::int64_t{grid.x} * Kernel::kThreads, FastDivider(shape.q()),
               FastDivider(shape.p()), FastDivider(shape.k), args.x, filter, bias, args.y},
        grid, args.stream);
  };
  return {.launch = launch, .geometry = launch_geometry<Kernel>(grid)};
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
