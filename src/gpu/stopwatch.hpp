// Time between two points of a stream, by the device's own clock.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/check.hpp"

namespace convmish {

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    CONVMISH_CHECK_CUDA(cudaEventCreate(&start_));
    CONVMISH_CHECK_CUDA(cudaEventCreate(&stop_));
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(start_);
    (void)cudaEventDestroy(stop_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start() { CONVMISH_CHECK_CUDA(cudaEventRecord(start_, stream_)); }
  void stop() { CONVMISH_CHECK_CUDA(cudaEventRecord(stop_, stream_)); }

  /// From start() to stop(), milliseconds. Waits for the stream to get there.
  double elapsed_ms() const {
    CONVMISH_CHECK_CUDA(cudaEventSynchronize(stop_));
    float ms = 0;
    CONVMISH_CHECK_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return static_cast<double>(ms);
  }

  template <class Launch>
  double time_ms(const Launch& launch) {
    start();
    launch();
    stop();
    return elapsed_ms();
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace convmish
