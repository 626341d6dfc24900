#include "gpu/check.hpp"
#include "tests/gpu/range_guard_misses.hpp"
#include "variants/common/device_memory.hpp"
#include "variants/common/hopper_operands.cuh"

namespace convmish {
namespace {

constexpr int kThreads = 256, kBlocks = 4096;
constexpr std::uint64_t kInputs = std::uint64_t{1} << 32;

template <int kTerms>
__global__ void __launch_bounds__(kThreads) count_kernel(unsigned long long* total) {
  unsigned long long misses = 0;
  for (std::uint64_t bits = blockIdx.x * kThreads + threadIdx.x; bits < kInputs; bits += kBlocks * kThreads) {
    const float value = __uint_as_float(static_cast<unsigned>(bits));
    // In every place of a granule in turn, among values that lose nothing.
    float values[1][hopper::kPlaneChannels];
    for (int c = 0; c < hopper::kPlaneChannels; ++c)
      values[0][c] = c == bits % hopper::kPlaneChannels ? value : 1.0f;
    uint4 granules[1][kTerms];
    misses += hopper::convert_and_judge(values, granules) !=
              hopper::split_loses_bits<kTerms>(value * hopper::kXScale);
  }
  atomicAdd(total, misses);
}

}  // namespace

RangeGuardMisses count_range_guard_misses() {
  const DeviceMemory memory = allocate_device_memory(2 * sizeof(unsigned long long));
  auto* const total = static_cast<unsigned long long*>(memory.get());
  CONVMISH_CHECK_CUDA(cudaMemset(total, 0, 2 * sizeof *total));
  count_kernel<1><<<kBlocks, kThreads>>>(total);
  count_kernel<2><<<kBlocks, kThreads>>>(total + 1);
  CONVMISH_CHECK_CUDA(cudaGetLastError());
  unsigned long long misses[2];
  CONVMISH_CHECK_CUDA(cudaMemcpy(misses, total, sizeof misses, cudaMemcpyDeviceToHost));
  return {misses[0], misses[1]};
}

}  // namespace convmish
