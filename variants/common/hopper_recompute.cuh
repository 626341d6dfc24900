// Outputs that fp16 multiplicands cannot serve, again in fp32: in a second pass behind the kernel that left
// them, or by its own warps, at its end (hopper_packed.cuh, hopper_pixel_ring.cuh).
//
// The first pass leaves a flag for every granule of x (some channels of some pixels) in which a value may be
// one that fp16 cannot serve. Here each flagged granule is read again, and the outputs
// whose window holds a value that rounding to fp16 really costs bits are recomputed from the fp32 tensors.
// Without flags the pass reads the flags and ends.
#pragma once

#include "variants/common/hopper_launch.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/mish.hpp"

namespace convmish::hopper {

/// A pixel of x, or an output. Rows are counted through the batch, h to an image.
struct Position {
  std::int64_t row;
  int column;
};

/// What a flag of an OutputUnit covers: all the unit's columns and their halo, of
struct Granule {
  int first_row, rows;  // counted from the unit's first row
  int first_channel, channels;
};

/// A rectangle of outputs with the flags that concern it. Some of the outputs may lie outside of the tensor.
struct OutputUnit {
  std::int64_t first_row;
  int first_column;
  int rows, columns;
  const std::uint8_t* flags;

  __device__ int outputs() const { return rows * columns; }
  __device__ Position output(int i) const { return {first_row + i / columns, first_column + i % columns}; }
  /// The inverse; -1 for what is not in the unit.
  __device__ int index(const Position& at) const {
    const std::int64_t row = at.row - first_row;
    const int column = at.column - first_column;
    return row >= 0 && row < rows && column >= 0 && column < columns
               ? static_cast<int>(row) * columns + column
               : -1;
  }
  __device__ int pixels(const Granule& granule) const { return granule.rows * width(); }
  __device__ Position pixel(const Granule& granule, int i) const {
    return {first_row + granule.first_row + i / width(), first_column + i % width()};
  }

 private:
  __device__ int width() const { return columns + kFilterSize - 1; }
};

inline constexpr int kRecomputeThreads = 128;
inline constexpr int kUnitsPerBlock = 8;  // scanned by one block: enough work to hide its launch
inline constexpr int kMaxUnitOutputs = 1024;
inline constexpr int kRecomputePixels =
    4;  // outputs a thread computes together, to use each weight more than once

struct RecomputeArgs {
  const float* x;
  float* y;
  const float* filter;  // [c][tap][k]
  const float* bias;
  std::uint64_t* recomputed;  // outputs, each once, are added to this
  int n, c, h, w, k;
  int unserved;  // of the k output channels: recomputed whatever the flags say

  __device__ int p() const { return h - (kFilterSize - 1); }
  __device__ int q() const { return w - (kFilterSize - 1); }
  __device__ void count(std::uint64_t outputs) const {
    atomicAdd(reinterpret_cast<unsigned long long*>(recomputed), outputs);
  }
};

/// Whether a unit has a flag, for a warp.
__device__ inline bool is_flagged(const std::uint8_t* flags, int count) {
  bool any = false;
  // From the L2: the L1 may still have those of a launch before.
  for (int f = threadIdx.x % 32; f < count; f += 32) any |= __ldcg(flags + f) != 0;
  return __any_sync(~0u, any);
}

/// Marks the outputs of `unit` that have a value in `granule` in their window which kTerms fp16 terms cannot
/// hold.
template <int kTerms, class Unit, class Granule>
__device__ void scan_granule(const RecomputeArgs& args, const Unit& unit, const Granule& granule,
                             std::uint8_t* lost) {
  const std::int64_t plane = std::int64_t{args.h} * args.w;
  for (int i = threadIdx.x; i < unit.pixels(granule); i += kRecomputeThreads) {
    const Position at = unit.pixel(granule, i);
    if (at.row >= std::int64_t{args.n} * args.h || at.column >= args.w) continue;
    const float* const pixel =
        args.x + at.row / args.h * args.c * plane + at.row % args.h * args.w + at.column;
    bool any_lost = false;
    const int end = min(granule.first_channel + granule.channels, args.c);
    for (int first = granule.first_channel; first < end; first += kPlaneChannels) {
      // Loaded together: one after the other they would take as long as a kernel.
      float values[kPlaneChannels];
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c) values[c] = first + c < end ? pixel[(first + c) * plane] : 0;
      any_lost |= loses_bits<kTerms>(values);
    }
    if (!any_lost) continue;
    for (int r = 0; r < kFilterSize; ++r)
      for (int s = 0; s < kFilterSize; ++s)
        if (const int output = unit.index({at.row - r, at.column - s}); output >= 0) lost[output] = 1;
  }
}

/// Outputs `first` ... of `list`, for every output channel.
template <class Unit>
__device__ void recompute_outputs(const RecomputeArgs& args, const Unit& unit, const int* list, int first,
                                  int count) {
  const std::int64_t plane = std::int64_t{args.h} * args.w;
  const float* window[kRecomputePixels];
  std::int64_t out[kRecomputePixels];
#pragma unroll
  for (int i = 0; i < kRecomputePixels; ++i) {
    const Position at = unit.output(list[min(first + i, count - 1)]);
    const std::int64_t image = at.row / args.h, row = at.row % args.h;
    window[i] = args.x + image * args.c * plane + row * args.w + at.column;
    out[i] = (image * args.k * args.p() + row) * args.q() + at.column;
  }
  for (int k = threadIdx.x; k < args.k; k += kRecomputeThreads) {
    float sum[kRecomputePixels] = {};
    const float* weight = args.filter + k;
    for (int c = 0; c < args.c; ++c)
      for (int r = 0; r < kFilterSize; ++r)
        for (int s = 0; s < kFilterSize; ++s, weight += args.k)
#pragma unroll
          for (int i = 0; i < kRecomputePixels; ++i)
            sum[i] += __ldg(window[i] + c * plane + r * args.w + s) * __ldg(weight);
#pragma unroll
    for (int i = 0; i < kRecomputePixels; ++i)
      if (first + i < count)
        args.y[out[i] + std::int64_t{k} * args.p() * args.q()] =
            convmish::mish_of_mish(sum[i] + args.bias[k]);
  }
}

/// One output, of channel k. `window`: the first of its pixels, in the first channel of x.
__device__ inline float output_of(const RecomputeArgs& args, const float* window, int k) {
  const std::int64_t plane = std::int64_t{args.h} * args.w;
  const float* weight = args.filter + k;
  float sum = 0;
  for (int c = 0; c < args.c; ++c)
    for (int r = 0; r < kFilterSize; ++r)
      for (int s = 0; s < kFilterSize; ++s, weight += args.k)
        sum += __ldg(window + c * plane + r * args.w + s) * __ldg(weight);
  return convmish::mish_of_mish(sum + args.bias[k]);
}

/// Output channels first ... end - 1.
struct Channels {
  int first, end;
};

/// For a warp: one output, for those channels, if kTerms fp16 terms cannot hold a value of its window. Of
/// those that recompute an output for some channels each, the one that has channel 0 counts it.
template <int kTerms>
__device__ void recompute_if_lost(const RecomputeArgs& args, const Position& at, Channels channels) {
  const int lane = threadIdx.x % 32;
  const std::int64_t plane = std::int64_t{args.h} * args.w, image = at.row / args.h, row = at.row % args.h;
  const float* const window = args.x + image * args.c * plane + row * args.w + at.column;
  bool lost = false;
  for (int i = lane; i < args.c * kTaps; i += 32)
    lost |= split_loses_bits<kTerms>(
        __ldg(window + i / kTaps * plane + i % kTaps / kFilterSize * args.w + i % kFilterSize) * kXScale);
  if (!__any_sync(~0u, lost)) return;
  if (lane == 0 && channels.first == 0) args.count(args.k - args.unserved);
  for (int k = channels.first + lane; k < channels.end; k += 32) {
    args.y[((image * args.k + k) * args.p() + row) * args.q() + at.column] = output_of(args, window, k);
  }
}

/// For `warps` warps: the outputs among `outputs`, if those are flagged, an output a warp. `outputs` has
/// flags(), flag_count(), outputs(), output(i) and exists(position).
template <int kTerms, class Outputs>
__device__ void recompute_if_flagged(const RecomputeArgs& args, const Outputs& outputs, Channels channels,
                                     int warp, int warps) {
  if (!is_flagged(outputs.flags(), outputs.flag_count())) return;
#pragma unroll 1
  for (int i = warp; i < outputs.outputs(); i += warps)
    if (const Position at = outputs.output(i); outputs.exists(at))
      recompute_if_lost<kTerms>(args, at, channels);
}

/// `Units` maps the first pass's flags: count(), unit(i), flag_count(), granule(i). A unit is of at most
/// kMaxUnitOutputs outputs, and is used as OutputUnit is.
template <int kTerms, class Units>
__global__ void __launch_bounds__(kRecomputeThreads) recompute_kernel(RecomputeArgs args, Units units) {
  __shared__ bool flagged[kUnitsPerBlock];
  __shared__ std::uint8_t lost[kMaxUnitOutputs];
  __shared__ int list[kMaxUnitOutputs];
  __shared__ int list_count;
  ptx::wait_for_kernel_before();
  // Neighbouring units go to different blocks: what one granule concerns is then recomputed in parallel.
  const auto unit_index = [](int i) { return blockIdx.x + std::int64_t{gridDim.x} * i; };

  for (int i = threadIdx.x / 32; i < kUnitsPerBlock && unit_index(i) < units.count();
       i += kRecomputeThreads / 32) {
    const bool any = is_flagged(units.unit(unit_index(i)).flags, units.flag_count());
    if (threadIdx.x % 32 == 0) flagged[i] = any;
  }
  __syncthreads();
  for (int i = 0; i < kUnitsPerBlock && unit_index(i) < units.count(); ++i) {
    if (!flagged[i]) continue;
    const auto unit = units.unit(unit_index(i));
    for (int o = threadIdx.x; o < unit.outputs(); o += kRecomputeThreads) lost[o] = 0;
    if (threadIdx.x == 0) list_count = 0;
    __syncthreads();
    for (int first = 0; first < units.flag_count(); first += 32) {
      const int mine = first + static_cast<int>(threadIdx.x) % 32;
      unsigned raised = __ballot_sync(~0u, mine < units.flag_count() && __ldcg(unit.flags + mine) != 0);
      for (; raised != 0; raised &= raised - 1)
        scan_granule<kTerms>(args, unit, units.granule(first + __ffs(raised) - 1), lost);
    }
    __syncthreads();
    for (int o = threadIdx.x; o < unit.outputs(); o += kRecomputeThreads) {
      const Position at = unit.output(o);
      const bool exists =
          at.row < std::int64_t{args.n} * args.h && at.row % args.h < args.p() && at.column < args.q();
      if (lost[o] && exists) list[atomicAdd(&list_count, 1)] = o;
    }
    __syncthreads();
    if (threadIdx.x == 0 && list_count > 0) args.count(std::uint64_t(list_count) * (args.k - args.unserved));
    for (int first = 0; first < list_count; first += kRecomputePixels)
      recompute_outputs(args, unit, list, first, list_count);
    __syncthreads();
  }
}

template <int kTerms, class Units>
void recompute(const RecomputeArgs& args, const Units& units, Stream stream) {
  const auto blocks = static_cast<unsigned>((units.count() + kUnitsPerBlock - 1) / kUnitsPerBlock);
  // Compiled for less than sm_90, even if for what then runs on it, the kernel cannot wait by itself.
  static const bool waits = [] {
    cudaFuncAttributes attributes{};
    CONVMISH_CHECK_CUDA(cudaFuncGetAttributes(&attributes, recompute_kernel<kTerms, Units>));
    return attributes.ptxVersion >= 90;
  }();
  if (waits)
    return launch_after_start(recompute_kernel<kTerms, Units>, blocks, kRecomputeThreads, 0, 1, stream, args,
                              units);
  recompute_kernel<kTerms><<<blocks, kRecomputeThreads, 0, stream>>>(args, units);
  CONVMISH_CHECK_CUDA(cudaGetLastError());
}

/// All outputs of the listed channels: one thread an output, one grid row (in y) a listed channel.
static __global__ void __launch_bounds__(kRecomputeThreads)
    recompute_channels_kernel(RecomputeArgs args, const int* channels, std::int64_t pixels) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kRecomputeThreads + threadIdx.x;
  if (i >= pixels) return;
  if (i == 0) args.count(pixels);
  const int k = channels[blockIdx.y];
  const std::int64_t plane = std::int64_t{args.h} * args.w, out_plane = std::int64_t{args.p()} * args.q();
  const std::int64_t image = i / out_plane, row = i % out_plane / args.q(), column = i % args.q();
  const float* const window = args.x + image * args.c * plane + row * args.w + column;
  args.y[(image * args.k + k) * out_plane + row * args.q() + column] = output_of(args, window, k);
}

inline void recompute_channels(const RecomputeArgs& args, const int* channels, int count, Stream stream) {
  constexpr int kGridLimit = 65535;  // of the y dimension
  const std::int64_t pixels = std::int64_t{args.n} * (args.h - 2) * (args.w - 2);
  const auto blocks = static_cast<unsigned>((pixels + kRecomputeThreads - 1) / kRecomputeThreads);
  for (int first = 0; first < count; first += kGridLimit) {
    const dim3 grid(blocks, static_cast<unsigned>(count - first < kGridLimit ? count - first : kGridLimit));
    recompute_channels_kernel<<<grid, kRecomputeThreads, 0, stream>>>(args, channels + first, pixels);
    CONVMISH_CHECK_CUDA(cudaGetLastError());
  }
}

}  // namespace convmish::hopper
