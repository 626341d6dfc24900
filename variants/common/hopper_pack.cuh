// The pass before the packed kernel: x as planes of fp16 granules, once for all tiles that read it.
//
//   planes  [term][plane of 8 input channels][pixel][8 halves], pixels counted through the batch:
//           (image * h + row) * w + column
//
// A plane's pixels are consecutive, so that a tile's input is a few bulk copies, and filter tap (r, s) of an
// output is the granule r w + s pixels on. Channels beyond c and pixels behind the last are zero.
//
// The range guard of a run of kRunPixels pixels of a plane leaves one flag.
#pragma once

#include "gpu/check.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"

namespace convmish::hopper::packed {

inline constexpr int kPackThreads = 128;
inline constexpr int kPackPixels = 4;                          // a thread's, to have loads enough under way
inline constexpr int kRunPixels = kPackThreads * kPackPixels;  // of a thread block
inline constexpr int kSlicePlanes = kStepC / kPlaneChannels;

/// Slices of 16 input channels, what one wgmma sums over.
CONVMISH_HD constexpr int slices(int c) {
  return (c + kStepC - 1) / kStepC;
}

/// The packed x, with its flags.
struct Planes {
  uint4* granules;
  std::uint8_t* raised;  // [run][plane]
  int n, c, h, w;
  int tail_runs;            // runs behind the last pixel
  FastDivider by_image{1};  // h w

  CONVMISH_HD std::int64_t pixels() const { return std::int64_t{n} * h * w; }
  CONVMISH_HD std::int64_t live_runs() const { return (pixels() + kRunPixels - 1) / kRunPixels; }
  CONVMISH_HD std::int64_t runs() const { return live_runs() + tail_runs; }
  CONVMISH_HD std::int64_t plane_pixels() const { return runs() * kRunPixels; }
  CONVMISH_HD int planes() const { return slices(c) * kSlicePlanes; }
  CONVMISH_HD std::int64_t term_pixels() const { return planes() * plane_pixels(); }
  CONVMISH_HD std::int64_t flags() const { return runs() * planes(); }
};

/// A thread block packs a run of a plane. kVector: neighbouring pixels that a thread loads at once, 4 where
/// an image has a multiple of them. Each of a warp's stores would then leave gaps, which is why the granules
/// go through shared memory, from where neighbours store neighbours.
///
/// Whether a run of outputs has to be computed again is known here: values that the guard suspects are looked
/// at once more.
template <int kTerms, int kVector>
__global__ void __launch_bounds__(kPackThreads) pack_kernel(const float* __restrict__ x, Planes to) {
  __shared__ uint4 packed[kTerms][kRunPixels];
  ptx::start_kernel_after();
  const auto runs = static_cast<unsigned>(to.runs());
  const unsigned run = blockIdx.x % runs, plane = blockIdx.x / runs;
  const std::int64_t first_pixel = std::int64_t{run} * kRunPixels, channel_stride = std::int64_t{to.h} * to.w;
  const int first_channel = static_cast<int>(plane) * kPlaneChannels;
  const auto pixel_of = [](int i) {
    return (i / kVector * kPackThreads + static_cast<int>(threadIdx.x)) * kVector + i % kVector;
  };
  float values[kPackPixels][kPlaneChannels];
#pragma unroll
  for (int i = 0; i < kPackPixels; i += kVector) {
    const std::int64_t pixel = first_pixel + pixel_of(i);
    const auto [image, place] = to.by_image.divide(pixel);
    const int channels = pixel < to.pixels() ? to.c - first_channel : 0;
    const float* at = x + (image * to.c + first_channel) * channel_stride + place;
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c, at += channel_stride) {
      float loaded[kVector] = {};
      if (c < channels) ptx::load_global_once(loaded, at, ptx::kEvictFirst);
#pragma unroll
      for (int j = 0; j < kVector; ++j) values[i + j][c] = loaded[j];
    }
  }
  uint4 converted[kPackPixels][kTerms];
  bool raised = convert_and_judge(values, converted);
#pragma unroll
  for (int i = 0; i < kPackPixels; ++i)
#pragma unroll
    for (int term = 0; term < kTerms; ++term) packed[term][pixel_of(i)] = converted[i][term];
  raised = __syncthreads_or(raised);
  if (threadIdx.x == 0) to.raised[std::int64_t{run} * to.planes() + plane] = raised;
#pragma unroll
  for (int term = 0; term < kTerms; ++term) {
    uint4* const out = to.granules + term * to.term_pixels() + plane * to.plane_pixels() + first_pixel;
#pragma unroll
    for (int i = threadIdx.x; i < kRunPixels; i += kPackThreads) out[i] = packed[term][i];
  }
}

template <int kTerms>
void pack(const float* x, const Planes& to, Stream stream) {
  const auto kernel = to.h * std::int64_t{to.w} % 4 == 0 ? pack_kernel<kTerms, 4> : pack_kernel<kTerms, 1>;
  kernel<<<static_cast<unsigned>(to.runs() * to.planes()), kPackThreads, 0, stream>>>(x, to);
  CONVMISH_CHECK_CUDA(cudaGetLastError());
}

// --- the guard's flags, for what has to be computed again -------------------------------------------------

/// Outputs, each counted as the first pixel of its window: rows of 8, `pitch` pixels from one to the next,
/// and the flags that their windows reach into.
struct OutputRows {
  const Planes& planes;
  std::int64_t first_pixel, end_pixel;  // end: of those that count
  int rows, pitch;

  __device__ std::int64_t first_run() const { return first_pixel / kRunPixels; }
  __device__ const std::uint8_t* flags() const { return planes.raised + first_run() * planes.planes(); }
  __device__ int flag_count() const {
    const std::int64_t last = first_pixel + std::int64_t{rows - 1} * pitch + 7 + 2 * planes.w + 2;
    return static_cast<int>(min(last / kRunPixels, planes.live_runs() - 1) - first_run() + 1) *
           planes.planes();
  }
  __device__ int outputs() const { return rows * 8; }
  __device__ Position output(int i) const {
    const std::int64_t pixel = first_pixel + i / 8 * pitch + i % 8;
    return {pixel / planes.w, static_cast<int>(pixel % planes.w)};
  }
  __device__ bool exists(const Position& at) const {
    return at.row * planes.w + at.column < end_pixel && at.row < std::int64_t{planes.n} * planes.h &&
           at.row % planes.h < planes.h - (kFilterSize - 1) && at.column < planes.w - (kFilterSize - 1);
  }
};

}  // namespace convmish::hopper::packed
