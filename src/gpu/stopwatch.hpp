// Time between two points of a stream, by the device's own clock.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/check.hpp"

namespace convmish {
namespace gpu {
/// Occupies the stream for about `microseconds`, so that the host can enqueue ahead of the device.
void spin(double microseconds, cudaStream_t stream);
}  // namespace gpu

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

  /// Of what `launch` enqueues in at most `lead_us`: the device has all of it in its queue when it comes to
  /// it, so that no gap of the host's is timed.
  template <class Launch>
  double time_ms(const Launch& launch, double lead_us) {
    gpu::spin(lead_us, stream_);
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
