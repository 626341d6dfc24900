// What a plan of the Hopper kernels makes of the filter, once: fp16 matrices with their scales, and an fp32
// copy, channels innermost, for recomputation.
#pragma once

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"

namespace convmish::hopper {

struct PackedFilter {
  const uint4* halves;          // in the kernel's layout
  const ChannelAffine* affine;  // by output channel, the layout's padding included
  const float* transposed;      // [c][tap][k]
  const int* unserved;          // output channels that fp16 cannot serve, whatever x is; all recomputed
  int unserved_count;
};

/// One thread block an output channel.
inline constexpr int kRepackThreads = 128;

/// fp32 sums of fp16 products stay finite, and |z| within what mish_of_mish_of_ln2() takes, below this.
inline constexpr float kLargestPreActivation = 0x1p126f;
/// 2^-(scale + 8) must be a normal float.
inline constexpr int kLargestScaleLog2 = 100;

/// `Layout` tells where a kernel wants the filter's halves: kTerms, index(), and how many channels with its
/// padding, which is 0.
template <class Layout>
__global__ void __launch_bounds__(kRepackThreads)
    repack_kernel(const float* filter, const float* bias, int c, int k, Layout layout, __half* halves,
                  ChannelAffine* affine, float* transposed, int* unserved, int* unserved_count) {
  constexpr int kTerms = Layout::kTerms;
  __shared__ unsigned largest_bits;
  __shared__ int lost;
  __shared__ float partial[kRepackThreads];
  const int channel = blockIdx.x, count = c * kTaps;
  const float* const taps = filter + std::int64_t{channel} * count;
  const bool live = channel < k;
  if (threadIdx.x == 0) largest_bits = lost = 0;
  __syncthreads();

  float sum = 0;
  unsigned bits = 0;
  for (int i = threadIdx.x; live && i < count; i += kRepackThreads) {
    sum += fabsf(taps[i]);
    bits = max(bits, __float_as_uint(fabsf(taps[i])));
    transposed[std::int64_t{i} * k + channel] = taps[i];
  }
  partial[threadIdx.x] = sum;
  atomicMax(&largest_bits, bits);
  __syncthreads();

  // The largest weight goes to [2^14, 2^15).
  const float largest = __uint_as_float(largest_bits);
  const bool finite = largest_bits < 0x7f800000u;
  const int scale_log2 = largest > 0 && finite ? min(14 - ilogbf(largest), kLargestScaleLog2) : 0;
  for (int i = threadIdx.x; i < layout.input_channels() * kTaps; i += kRepackThreads) {
    const int input = i / kTaps, tap = i % kTaps;
    const float scaled = live && finite && input < c ? ldexpf(taps[i], scale_log2) : 0.0f;
    if (split_loses_bits<kTerms>(scaled)) lost = 1;
    __half terms[kTerms];
    split(scaled, terms);
#pragma unroll
    for (int term = 0; term < kTerms; ++term) halves[layout.index(channel, input, tap, term)] = terms[term];
  }
  __syncthreads();
  if (threadIdx.x > 0) return;

  const float offset = live ? bias[channel] : 0.0f;
  affine[channel] = {ldexpf(kLog2E, -scale_log2 - kXScaleLog2), offset * kLog2E};
  float bound = fabsf(offset);
  for (const float p : partial) bound += p * (65536 / kXScale);
  if (live && (lost || !finite || !(bound < kLargestPreActivation)))
    unserved[atomicAdd(unserved_count, 1)] = channel;
}

/// Repacks on the problem's stream, and waits to learn which channels are unserved.
template <class Layout>
PackedFilter repack(const Problem& problem, const Layout& layout) {
  const Shape& shape = problem.shape;
  const int c = static_cast<int>(shape.c), k = static_cast<int>(shape.k);
  const int channels = layout.output_channels();
  const auto halves = static_cast<__half*>(problem.memory->allocate(layout.bytes()));
  const auto affine = static_cast<ChannelAffine*>(problem.memory->allocate(channels * sizeof(ChannelAffine)));
  const auto transposed =
      static_cast<float*>(problem.memory->allocate(shape.filter_elements() * sizeof(float)));
  const auto unserved = static_cast<int*>(problem.memory->allocate((std::size_t{1} + k) * sizeof(int)));

  int count = 0;
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(unserved, 0, sizeof(int), problem.stream));
  repack_kernel<<<channels, kRepackThreads, 0, problem.stream>>>(
      problem.filter, problem.bias, c, k, layout, halves, affine, transposed, unserved + 1, unserved);
  CONVMISH_CHECK_CUDA(cudaGetLastError());
  CONVMISH_CHECK_CUDA(
      cudaMemcpyAsync(&count, unserved, sizeof count, cudaMemcpyDeviceToHost, problem.stream));
  CONVMISH_CHECK_CUDA(cudaStreamSynchronize(problem.stream));
  return {reinterpret_cast<const uint4*>(halves), affine, transposed, unserved + 1, count};
}

}  // namespace convmish::hopper
