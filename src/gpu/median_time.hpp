// How long a launch takes once the GPU has warmed up to it.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/device.hpp"
#include "gpu/check.hpp"
#include "gpu/stopwatch.hpp"

namespace convmish::gpu {

/// Median of nine launches, milliseconds, after as many as Device::kWarmUpMs take. Each has a lead, as in
/// Device::time_launch: no gap of the host's is timed.
template <class Launch>
double median_ms(cudaStream_t stream, Launch launch) {
  constexpr std::chrono::duration<double, std::milli> kWarmUp{Device::kWarmUpMs};
  const auto start_of_warm_up = std::chrono::steady_clock::now();
  do {
    launch();
    CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream));
  } while (std::chrono::steady_clock::now() - start_of_warm_up < kWarmUp);

  Stopwatch watch(stream);
  std::array<double, 9> ms{};
  for (double& sample : ms) sample = watch.time_ms(launch, Device::kLeadUs);
  std::ranges::nth_element(ms, ms.begin() + ms.size() / 2);
  return ms[ms.size() / 2];
}

}  // namespace convmish::gpu
