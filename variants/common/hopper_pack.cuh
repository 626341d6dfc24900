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

#include <algorithm>

#include "gpu/check.hpp"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"

namespace convmish::hopper::packed {

inline constexpr int kPackThreads = 256;
inline constexpr int kPackPixels = 2;                          // a thread's, to have loads enough under way
inline constexpr int kRunPixels = kPackThreads * kPackPixels;  // of a thread block
inline constexpr int kSlicePlanes = kStepC / kPlaneChannels;
static_assert(kRunPixels <= kMaxUnitOutputs);

/// Slices of 16 input channels, what one wgmma sums over.
CONVMISH_HD constexpr int slices(int c) {
  return (c + kStepC - 1) / kStepC;
}

/// The packed x, with its flags.
struct Planes {
  uint4* granules;
  std::uint8_t* raised;  // [run][plane]
  int n, c, h, w;
  int halo_runs;  // runs that the halo of a run reaches into, at most
  int tail_runs;  // runs behind the last pixel

  CONVMISH_HD std::int64_t pixels() const { return std::int64_t{n} * h * w; }
  CONVMISH_HD std::int64_t live_runs() const { return (pixels() + kRunPixels - 1) / kRunPixels; }
  CONVMISH_HD std::int64_t runs() const { return live_runs() + tail_runs; }
  CONVMISH_HD std::int64_t plane_pixels() const { return runs() * kRunPixels; }
  CONVMISH_HD int planes() const { return slices(c) * kSlicePlanes; }
  CONVMISH_HD std::int64_t term_pixels() const { return planes() * plane_pixels(); }
  CONVMISH_HD std::int64_t flags() const { return runs() * planes(); }
};

/// Whether a run of outputs has to be computed again is known here: values that the guard suspects are looked
/// at once more.
template <int kTerms>
__global__ void __launch_bounds__(kPackThreads) pack_kernel(const float* __restrict__ x, Planes to) {
  ptx::start_kernel_after();
  const std::int64_t channel_stride = std::int64_t{to.h} * to.w;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * kRunPixels,
                     first_image = first_pixel / channel_stride,
                     first_place = first_pixel - first_image * channel_stride;
  const float* source[kPackPixels];  // in an image's first channel
  bool exists[kPackPixels];
#pragma unroll
  for (int i = 0; i < kPackPixels; ++i) {
    const int pixel = i * kPackThreads + threadIdx.x;
    std::int64_t image = first_image, place = first_place + pixel;
    if (place >= channel_stride) {
      const auto images = channel_stride > kRunPixels
                              ? 1u
                              : static_cast<unsigned>(place) / static_cast<unsigned>(channel_stride);
      image += images, place -= images * channel_stride;
    }
    exists[i] = first_pixel + pixel < to.pixels();
    source[i] = x + image * to.c * channel_stride + place;
  }
  for (int plane = blockIdx.y; plane < to.planes(); plane += gridDim.y) {
    const int first_channel = plane * kPlaneChannels;
    float granules[kPackPixels][kPlaneChannels];
#pragma unroll
    for (int i = 0; i < kPackPixels; ++i) {
      const int channels = exists[i] ? to.c - first_channel : 0;
      const float* at = source[i] + first_channel * channel_stride;
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, at += channel_stride)
        granules[i][c] = c < channels ? ptx::load_global_once(at, ptx::kEvictFirst) : 0.0f;
    }
    RangeGuard guard;
    uint4* const destination = to.granules + plane * to.plane_pixels() + first_pixel + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kPackPixels; ++i) {
      uint4 converted[kTerms];
      convert_granule(granules[i], converted);
#pragma unroll
      for (int term = 0; term < kTerms; ++term)
        destination[term * to.term_pixels() + i * kPackThreads] = converted[term];
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c) guard.see(granules[i][c]);
    }
    bool raised = false;
    if (guard.raised())
      for (int i = 0; i < kPackPixels; ++i)
        for (int c = 0; c < kPlaneChannels; ++c) raised |= split_loses_bits<kTerms>(granules[i][c] * kXScale);
    raised = __syncthreads_or(raised);
    if (threadIdx.x == 0) to.raised[std::int64_t{blockIdx.x} * to.planes() + plane] = raised;
  }
}

inline constexpr int kMostPackRows = 65535;  // of the y dimension of a grid

template <int kTerms>
void pack(const float* x, const Planes& to, Stream stream) {
  const dim3 grid(static_cast<unsigned>(to.runs()),
                  static_cast<unsigned>(std::min(to.planes(), kMostPackRows)));
  pack_kernel<kTerms><<<grid, kPackThreads, 0, stream>>>(x, to);
  CONVMISH_CHECK_CUDA(cudaGetLastError());
}

// --- the guard's flags, for the second pass --------------------------------------------------------------

/// What a flag covers.
struct GranuleRun {
  int first_pixel;  // counted from the unit's
  int first_channel, channels;
};

/// A run of outputs, each counted as the first pixel of its window.
struct OutputRun {
  std::int64_t first_pixel;
  int w;
  const std::uint8_t* flags;

  __device__ int outputs() const { return kRunPixels; }
  __device__ Position output(int i) const { return position(first_pixel + i); }
  __device__ int index(const Position& at) const {
    const std::int64_t i = at.row * w + at.column - first_pixel;
    return at.column >= 0 && i >= 0 && i < kRunPixels ? static_cast<int>(i) : -1;
  }
  __device__ int pixels(const GranuleRun&) const { return kRunPixels; }
  __device__ Position pixel(const GranuleRun& granule, int i) const {
    return position(first_pixel + granule.first_pixel + i);
  }

 private:
  __device__ Position position(std::int64_t pixel) const { return {pixel / w, static_cast<int>(pixel % w)}; }
};

/// A unit's flags are those of its own run and of those behind it that its windows reach into.
struct Units {
  static constexpr bool kFlagsComeEarly = true;  // from the packing, two kernels before
  Planes planes;

  CONVMISH_HD std::int64_t count() const { return planes.live_runs(); }
  __device__ int flag_count() const { return (1 + planes.halo_runs) * planes.planes(); }
  __device__ OutputRun unit(std::int64_t i) const {
    return {.first_pixel = i * kRunPixels, .w = planes.w, .flags = planes.raised + i * planes.planes()};
  }
  __device__ GranuleRun granule(int flag) const {
    return {.first_pixel = flag / planes.planes() * kRunPixels,
            .first_channel = flag % planes.planes() * kPlaneChannels,
            .channels = kPlaneChannels};
  }
};

}  // namespace convmish::hopper::packed
