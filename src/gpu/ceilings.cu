#include <algorithm>
#include <array>

#include "gpu/allocation.hpp"
#include "gpu/ceilings.hpp"
#include "gpu/check.hpp"

namespace convmish::gpu {
namespace {

constexpr int kThreads = 256, kBlocksPerMultiprocessor = 8;
constexpr int kChains = 8;  // independent, to cover the pipe's latency
constexpr int kSteps = 4096;

struct Ffma {
  static __device__ float step(float v) { return __fmaf_rn(v, 0.999f, 0.001f); }
};
struct SpecialFunction {
  static __device__ float step(float v) {
    float result;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
  }
};

// Keeps a pipe busy with kChains x kSteps operations a thread.
template <class Operation>
__global__ void __launch_bounds__(kThreads) chains_kernel(float* sink) {
  float value[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) value[i] = 0.001f * static_cast<float>(threadIdx.x + i);
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int i = 0; i < kChains; ++i) value[i] = Operation::step(value[i]);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += value[i];
  if (sum == -1.0f) *sink = sum;  // never: keeps the work alive
}

/// Median of five, after one warm-up.
template <class Launch>
double median_ms(cudaStream_t stream, Launch launch) {
  cudaEvent_t start, stop;
  CONVMISH_CHECK_CUDA(cudaEventCreate(&start));
  CONVMISH_CHECK_CUDA(cudaEventCreate(&stop));
  std::array<float, 5> ms{};
  launch();
  for (float& sample : ms) {
    CONVMISH_CHECK_CUDA(cudaEventRecord(start, stream));
    launch();
    CONVMISH_CHECK_CUDA(cudaEventRecord(stop, stream));
    CONVMISH_CHECK_CUDA(cudaEventSynchronize(stop));
    CONVMISH_CHECK_CUDA(cudaEventElapsedTime(&sample, start, stop));
  }
  CONVMISH_CHECK_CUDA(cudaEventDestroy(start));
  CONVMISH_CHECK_CUDA(cudaEventDestroy(stop));
  std::sort(ms.begin(), ms.end());
  return static_cast<double>(ms[ms.size() / 2]);
}

template <class Operation>
double operations_per_second(const DeviceInfo& device, cudaStream_t stream) {
  const Allocation sink(sizeof(float));
  const int blocks = device.multiprocessors * kBlocksPerMultiprocessor;
  const double ms = median_ms(stream, [&] {
    chains_kernel<Operation>
        <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(static_cast<float*>(sink.data()));
    check_cuda(cudaGetLastError(), "chains_kernel");
  });
  return 1e3 * blocks * double{kThreads} * kChains * kSteps / ms;
}

double copy_bytes_per_second(cudaStream_t stream) {
  std::size_t available = 0, total = 0;
  CONVMISH_CHECK_CUDA(cudaMemGetInfo(&available, &total));
  // A gigabyte takes half a millisecond on the fastest GPU: start and end of the copy then weigh little.
  const std::size_t bytes = std::min(std::size_t{1} << 30, available / 4);
  const Allocation from(bytes), to(bytes);
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(from.data(), 0x3c, bytes, stream));
  const double ms = median_ms(stream, [&] {
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream));
  });
  return 1e3 * 2 * static_cast<double>(bytes) / ms;
}

/// Dense multiply-adds a clock and multiprocessor, from NVIDIA's architecture white papers; where parts of
/// one compute capability differ (GeForce halves the rate), the faster.
struct TensorRate {
  int compute_capability, tf32, fp16;
};
constexpr TensorRate kTensorRates[] = {
    {80, 512, 1024}, {86, 256, 512}, {89, 256, 512}, {90, 1024, 2048}, {100, 2048, 4096}};

}  // namespace

Ceilings measure_ceilings(const DeviceInfo& device, cudaStream_t stream) {
  Ceilings ceilings;
  ceilings.dram_bytes = copy_bytes_per_second(stream);
  ceilings.ffma_flops = 2 * operations_per_second<Ffma>(device, stream);
  ceilings.special_functions = operations_per_second<SpecialFunction>(device, stream);
  int clock_khz = 0;
  CONVMISH_CHECK_CUDA(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device.index));
  for (const TensorRate& rate : kTensorRates)
    if (rate.compute_capability == device.compute_capability()) {
      const double clocks = 1e3 * clock_khz * device.multiprocessors;
      ceilings.tensor_tf32_flops = 2 * clocks * rate.tf32;
      ceilings.tensor_fp16_flops = 2 * clocks * rate.fp16;
    }
  return ceilings;
}

}  // namespace convmish::gpu
