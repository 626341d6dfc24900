#include <algorithm>

#include "gpu/allocation.hpp"
#include "gpu/ceilings.hpp"
#include "gpu/check.hpp"
#include "gpu/matrix_rates.hpp"
#include "gpu/median_time.hpp"

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

}  // namespace

MeasuredCeilings measure_ceilings(const DeviceInfo& device, cudaStream_t stream) {
  MeasuredCeilings measured;
  measured.rates.dram_bytes = copy_bytes_per_second(stream);
  measured.rates.ffma_flops = 2 * operations_per_second<Ffma>(device, stream);
  measured.rates.special_functions = operations_per_second<SpecialFunction>(device, stream);
#if defined(CONVMISH_HAVE_CUBLAS)
  measure_matrix_rates(device, stream, measured);
#else
  measured.gap = ceilings_gap_of_build(device);
#endif
  return measured;
}

std::string ceilings_gap_of_build([[maybe_unused]] const DeviceInfo& device) {
#if !defined(CONVMISH_HAVE_CUBLAS)
  if (device.compute_capability() >= kVolta)
    return "tensor rates not measured: this build has no cuBLAS headers";
#endif
  return {};
}

}  // namespace convmish::gpu
