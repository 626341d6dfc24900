// Direct convolution through shared memory: one output channel a block, one tile of its output plane.
//
// A block walks the input channels, kChannels at a time: it stages the tile's halo of x and the filter taps
// of those channels, then every thread sums kOutputs neighbouring columns from there. x is read again for
// each of the k output channels: a block reuses it across pixels only.
//
// Staging: each thread has fixed places in the halo, the same for every channel, so that bounds and
// addresses are worked out once a block instead of once an element.
#pragma once

#include <algorithm>
#include <cstdint>

#include "variants/common/divide_up.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// What a tiled kernel is compiled for.
struct TileConfig {
  unsigned threads_x, threads_y;
  unsigned outputs;          // neighbouring columns a thread computes
  unsigned channels = 8;     // input channels staged at a time
  unsigned row_padding = 0;  // floats added to each row of the staged halo, against bank conflicts
  int min_blocks = 1;        // blocks a multiprocessor that registers must leave room for: left to itself
                             // the compiler takes a few more than 64, which costs a block
  MishForm mish = MishForm::one_exp;
};

/// A 16x16 tile, one output a thread or two: `tiled` and `coarsened_1x2`, which ablations step away from.
inline constexpr TileConfig kTiled{.threads_x = 16, .threads_y = 16, .outputs = 1, .min_blocks = 4};
inline constexpr TileConfig kCoarsened1x2{.threads_x = 8, .threads_y = 16, .outputs = 2, .min_blocks = 8};

template <TileConfig kConfig, template <class, ArrayName> class Element = PlainElement>
struct TiledConvolution {
  using Recorded = TiledConvolution<kConfig, RecordedElement>;
  static constexpr const char* kName = "tiled_convolution";
  static constexpr unsigned kThreadsX = kConfig.threads_x, kThreadsY = kConfig.threads_y;
  static constexpr unsigned kThreads = kThreadsX * kThreadsY;
  static constexpr unsigned kOutputs = kConfig.outputs, kChannels = kConfig.channels;
  static constexpr unsigned kTileP = kThreadsY, kTileQ = kThreadsX * kOutputs;
  static constexpr unsigned kHaloRows = kTileP + kFilterSize - 1, kHaloColumns = kTileQ + kFilterSize - 1;
  static constexpr unsigned kHalo = kHaloRows * kHaloColumns;
  static constexpr unsigned kPlaces = (kHalo + kThreads - 1) / kThreads;  // of the halo, a thread
  static constexpr int kMinBlocks = kConfig.min_blocks;
  static constexpr dim3 kBlock{kThreadsX, kThreadsY};

  struct SharedStorage {
    alignas(16) Element<float, "taps"> taps[kChannels][kTaps];
    Element<float, "x"> x[kChannels][kHaloRows][kHaloColumns + kConfig.row_padding];
  };

  Shape shape;
  unsigned tiles_q;           // tiles in a row of them
  unsigned first_k, first_n;  // of the part of the output that this launch covers
  const float* x;
  const float* filter;
  const float* bias;
  float* y;

  /// A place in the halo that one thread stages, for every channel.
  struct Place {
    unsigned row, column;  // in the halo
    bool inside;           // of the image; 0 is staged outside
    std::int64_t offset;   // in a plane of x
  };

  __device__ __forceinline__ Place place(unsigned i, std::int64_t tile_p, std::int64_t tile_q) const {
    const unsigned row = i / kHaloColumns, column = i % kHaloColumns;
    return {row, column, tile_p + row < shape.h && tile_q + column < shape.w,
            (tile_p + row) * shape.w + tile_q + column};
  }

  /// Stages `channels` channels of x from `x_channel` on, and zeros for the rest of the kChannels; so for
  /// taps.
  __device__ __forceinline__ void stage_x(SharedStorage& shared, const Place (&places)[kPlaces],
                                          unsigned thread, const float* x_channel, unsigned channels) const {
    const std::int64_t x_plane = shape.h * shape.w;
    CONVMISH_UNROLL
    for (unsigned j = 0; j < kPlaces; ++j) {
      if (thread + j * kThreads >= kHalo) break;  // only in the last round
      const Place& at = places[j];
      const float* source = x_channel + at.offset;
      CONVMISH_UNROLL
      for (unsigned c = 0; c < kChannels; ++c) {
        shared.x[c][at.row][at.column] = at.inside && c < channels ? __ldg(source) : 0.0f;
        source += x_plane;
      }
    }
  }

  __device__ __forceinline__ void stage_taps(SharedStorage& shared, unsigned thread, const float* taps,
                                             unsigned channels) const {
    CONVMISH_UNROLL
    for (unsigned i = thread; i < kChannels * kTaps; i += kThreads)
      shared.taps[i / kTaps][i % kTaps] = i < channels * kTaps ? __ldg(taps + i) : 0.0f;
  }

  __device__ __forceinline__ void accumulate(const SharedStorage& shared, float (&z)[kOutputs]) const {
    const unsigned row = threadIdx.y, column = threadIdx.x * kOutputs;  // of the window in the halo
    CONVMISH_UNROLL
    for (unsigned c = 0; c < kChannels; ++c) {
      CONVMISH_UNROLL
      for (unsigned r = 0; r < kFilterSize; ++r) {
        CONVMISH_UNROLL
        for (unsigned s = 0; s < kFilterSize; ++s) {
          CONVMISH_UNROLL
          for (unsigned j = 0; j < kOutputs; ++j)
            z[j] += shared.x[c][row + r][column + s + j] * shared.taps[c][r * kFilterSize + s];
        }
      }
    }
  }

  __device__ void operator()(SharedStorage& shared) const {
    const unsigned thread = threadIdx.y * kThreadsX + threadIdx.x;
    const std::int64_t tile_p = std::int64_t{blockIdx.x / tiles_q} * kTileP;
    const std::int64_t tile_q = std::int64_t{blockIdx.x % tiles_q} * kTileQ;
    const std::int64_t k = std::int64_t{first_k} + blockIdx.y, n = std::int64_t{first_n} + blockIdx.z;

    Place places[kPlaces];
    CONVMISH_UNROLL
    for (unsigned j = 0; j < kPlaces; ++j) places[j] = place(thread + j * kThreads, tile_p, tile_q);

    const float* x_channel = x + n * shape.c * shape.h * shape.w;
    const float* taps = filter + k * shape.reduction();
    float z[kOutputs];
    CONVMISH_UNROLL
    for (unsigned j = 0; j < kOutputs; ++j) z[j] = __ldg(bias + k);

    for (std::int64_t c = 0; c < shape.c; c += kChannels) {
      const auto channels = static_cast<unsigned>(std::min(shape.c - c, std::int64_t{kChannels}));
      stage_x(shared, places, thread, x_channel, channels);
      stage_taps(shared, thread, taps, channels);
      __syncthreads();
      accumulate(shared, z);
      __syncthreads();  // the next step overwrites what the slowest thread still reads
      x_channel += kChannels * shape.h * shape.w;
      taps += kChannels * kTaps;
    }

    const std::int64_t p = tile_p + threadIdx.y, q = tile_q + threadIdx.x * kOutputs;
    if (p >= shape.p()) return;
    float* row = y + ((n * shape.k + k) * shape.p() + p) * shape.q();
    CONVMISH_UNROLL
    for (unsigned j = 0; j < kOutputs; ++j)
      if (q + j < shape.q()) row[q + j] = activation<kConfig.mish>(z[j]);
  }
};

/// The plan of a variant that is a TiledConvolution: grid (tiles, k, n). Output channels or images beyond
/// what the grid's y and z can count are covered by further launches.
template <TileConfig kConfig>
Plan prepare_tiled_convolution(const Problem& problem) {
  using Kernel = TiledConvolution<kConfig>;
  constexpr std::int64_t kMaxGridYZ = 65535;
  const Shape shape = problem.shape;
  const std::int64_t tiles_p = divide_up(shape.p(), Kernel::kTileP);
  const std::int64_t tiles_q = divide_up(shape.q(), Kernel::kTileQ);
  const auto part = [=](std::int64_t first_k, std::int64_t first_n) {
    return dim3(static_cast<unsigned>(tiles_p * tiles_q),
                static_cast<unsigned>(std::min(shape.k - first_k, kMaxGridYZ)),
                static_cast<unsigned>(std::min(shape.n - first_n, kMaxGridYZ)));
  };
  const auto launch = [=, filter = problem.filter, bias = problem.bias](const LaunchArgs& args) {
    for (std::int64_t n = 0; n < shape.n; n += kMaxGridYZ)
      for (std::int64_t k = 0; k < shape.k; k += kMaxGridYZ)
        launch_kernel(Kernel{shape, static_cast<unsigned>(tiles_q), static_cast<unsigned>(k),
                             static_cast<unsigned>(n), args.x, filter, bias, args.y},
                      part(k, n), args.stream);
  };
  return {.launch = launch, .geometry = launch_geometry<Kernel>(part(0, 0))};
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
