// How long a launch takes once the GPU has warmed up to it.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "gpu/check.hpp"
#include "gpu/stopwatch.hpp"

namespace convmish::gpu {

/// Median of nine launches, milliseconds, after as many as 50 ms take: an idle GPU's clocks must rise first.
template <class Launch>
double median_ms(cudaStream_t stream, Launch launch) {
  constexpr std::chrono::milliseconds kWarmUp{50};
  const auto start_of_warm_up = std::chrono::steady_clock::now();
  do {
    launch();
    CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream));
  } while (std::chrono::steady_clock::now() - start_of_warm_up < kWarmUp);

  Stopwatch watch(stream);
  std::array<double, 9> ms{};
  for (double& sample : ms) sample = watch.time_ms(launch);
  std::ranges::nth_element(ms, ms.begin() + ms.size() / 2);
  return ms[ms.size() / 2];
}

}  // namespace convmish::gpu
