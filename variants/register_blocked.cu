// Direct convolution from registers: a thread sums 8 neighbouring columns of 8 output channels.
//
// Against `tiled`: a block stages its halo of x once for all its 64 or 128 output channels, and a
// multiply-add takes 27/576 of a load from shared memory instead of 1.25. The block walks the input channels
// in slices of 4; while it computes one, the copies of the next are under way. Sums are in the order c, r, s.
//
// Shared memory: a warp is 4 pixel groups (8 columns each) by 8 channel groups. A channel group is channels
// 4 g .. 4 g + 3 and those 32 on, so that the 8 groups read 128 bytes in a row; halo rows have a pitch of 12,
// 20 or 36 floats, so that the 4 pixel groups, side by side or one below the other, meet in no bank. Lanes n
// and n^1 read the same of x, n and n^2 the same of the filter: such loads take half the wavefronts
// (core/bank_conflicts.hpp). tests/cpu/register_blocked_test.cpp counts all that.
//
// Registers, no spills: 110 to 112 for sm_90a, 118 to 126 for sm_80, at most 128 from sm_75 to sm_120a, which
// leave room for 16 warps on a multiprocessor (CUDA 13.0; a run's report tells those of the GPU):
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90a -Xptxas -v -cubin
//     -o register_blocked.cubin variants/register_blocked.cu
//
// What binds it: the issue of multiply-adds. By a count of sm_90a instructions an input channel takes a warp
// 576 of them, 27 loads from shared memory and 44 instructions for loops and staging, so that they are 89 %
// of all; with bias, Mishes and stores 85 % at c = 64. On an H200 at n64 c64 h256 w256 k128, 13.36 ms, the
// issue slots are used to 81 %, the FMA pipe to 71 % and shared memory to 25 % (ncu). Left open: rows of y
// that are no multiple of 32 bytes are stored in parts of sectors.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "variants/common/configurations.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"
#include "variants/common/shared_vectors.hpp"

namespace convmish {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kPixels = 8, kChannels = 8;  // outputs of a thread: neighbouring columns, output channels
constexpr unsigned kPixelGroups = 4, kChannelGroups = 8;  // of a warp
constexpr unsigned kWarpChannels = kChannels * kChannelGroups;
constexpr unsigned kVector = 4;            // floats of the widest access
constexpr unsigned kSlice = 4;             // input channels staged at a time
constexpr unsigned kRegisters = 128;       // a thread, at most
constexpr unsigned kRegisterFile = 65536;  // of a multiprocessor, sm_75 to sm_120

/// The outputs of a block.
struct TileConfig {
  unsigned groups_q;  // pixel groups of a warp that lie side by side: 1, 2 or 4; the others lie below
  unsigned warps_p;   // one below the other
  unsigned warps_k;   // of 64 output channels each
};

template <TileConfig kTile, template <class, ArrayName> class Element = PlainElement>
struct RegisterBlockedKernel {
  using Recorded = RegisterBlockedKernel<kTile, RecordedElement>;
  static constexpr const char* kName = "register_blocked";
  static constexpr unsigned kThreads = kLanes * kTile.warps_p * kTile.warps_k;
  static constexpr dim3 kBlock{kThreads};
  static constexpr int kMinBlocks = kRegisterFile / (kRegisters * kThreads);
  static constexpr unsigned kWarpRows = kPixelGroups / kTile.groups_q;
  static constexpr unsigned kTileP = kTile.warps_p * kWarpRows, kTileQ = kTile.groups_q * kPixels;
  static constexpr unsigned kTileK = kTile.warps_k * kWarpChannels;
  static constexpr unsigned kHaloRows = kTileP + kFilterSize - 1;
  // Whole vectors, so that every row starts with one. Those beyond the tile are staged too: the words of a
  // warp's copies are then neighbours from one row to the next.
  static constexpr unsigned kHaloColumns = kTileQ + kVector;
  static constexpr unsigned kHalo = kHaloRows * kHaloColumns;
  static constexpr unsigned kFilterSlice = kSlice * kTaps * kTileK;

  struct Stage {
    alignas(16) Element<float, "filter"> filter[kFilterSlice];  // [c][tap][k]
    Element<float, "x"> x[kSlice * kHalo];                      // [c][row][column]
  };
  struct SharedStorage {
    Stage stages[2];
  };

  Shape shape;
  FastDivider by_tiles_k, by_tiles_q, by_tiles_p;
  std::int64_t first_block;  // of this launch
  const float* x;
  const float* packed_filter;  // [k / kTileK][c, padded to whole slices][tap][k % kTileK]
  const float* bias;
  float* y;

  /// Where outputs start: those of a block, or of a thread.
  struct Position {
    std::int64_t n, k, p, q;
  };

  /// Blocks that run together take the same pixels for all k, then their neighbours: x comes from L2.
  __device__ __forceinline__ Position tile_position() const {
    const auto [pixel_tile, tile_k] = by_tiles_k.divide(first_block + blockIdx.x);
    const auto [tile_row, tile_q] = by_tiles_q.divide(pixel_tile);
    const auto [n, tile_p] = by_tiles_p.divide(tile_row);
    return {n, tile_k * kTileK, tile_p * kTileP, tile_q * kTileQ};
  }

  /// The first of a thread's outputs, in the tile.
  struct Place {
    unsigned k, row, column;
  };

  static __device__ __forceinline__ Place thread_place() {
    const unsigned lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
    const unsigned channel_group = lane % 2 + lane / 4 % 4 * 2;  // bits 0, 2 and 3
    const unsigned pixel_group = lane / 2 % 2 + lane / 16 * 2;   // bits 1 and 4
    return {.k = warp % kTile.warps_k * kWarpChannels + channel_group * kVector,
            .row = warp / kTile.warps_k * kWarpRows + pixel_group / kTile.groups_q,
            .column = pixel_group % kTile.groups_q * kPixels};
  }

  /// Of channel i of a thread, counted from its first.
  static constexpr unsigned channel_offset(unsigned i) {
    return i / kVector * (kVector * kChannelGroups) + i % kVector;
  }

  /// Where the next slice comes from: the tile's first input of its first channel, and the filter's.
  struct Source {
    const float* x;
    const float* filter;
  };

  __device__ __forceinline__ Source first_source(const Position& tile) const {
    return {x + (tile.n * shape.c * shape.h + tile.p) * shape.w + tile.q,
            packed_filter + tile.k * divide_up(shape.c, kSlice) * (kSlice * kTaps)};
  }

  /// What lies outside the image is not staged: only outputs outside see it, and those are not stored.
  template <unsigned kWidth>
  __device__ __forceinline__ void stage_x(Stage& stage, const Position& tile, const float* from,
                                          unsigned channels) const {
    constexpr unsigned kRowVectors = kHaloColumns / kWidth, kVectors = kHaloRows * kRowVectors;
    for (unsigned i = threadIdx.x; i < channels * kVectors; i += kThreads) {
      const unsigned row = i % kVectors / kRowVectors, column = i % kRowVectors * kWidth;
      if (tile.p + row < shape.h && tile.q + column < shape.w)
        copy_async<kWidth>(&stage.x[i * kWidth], from + (i / kVectors * shape.h + row) * shape.w + column);
    }
  }

  /// Always all channels of a slice: the packed filter has zeros for those that x lacks.
  __device__ __forceinline__ void stage_filter(Stage& stage, const float* from) const {
    constexpr unsigned kRound = kThreads * kVector;
    auto* to = &stage.filter[threadIdx.x * kVector];
    from += threadIdx.x * kVector;
    CONVMISH_UNROLL
    for (unsigned i = 0; i < kFilterSlice; i += kRound)
      if (i + kRound <= kFilterSlice || threadIdx.x * kVector < kFilterSlice - i)
        copy_async<kVector>(to + i, from + i);
  }

  /// The first `channels` channels of `from`, which goes on to the next slice.
  __device__ __forceinline__ void stage_slice(Stage& stage, const Position& tile, Source& from,
                                              unsigned channels) const {
    if (shape.w % kVector == 0) {
      stage_x<kVector>(stage, tile, from.x, channels);
    } else {
      stage_x<1>(stage, tile, from.x, channels);
    }
    stage_filter(stage, from.filter);
    from.x += kSlice * shape.h * shape.w;
    from.filter += kFilterSlice;
  }

  template <unsigned kWidth, unsigned kCount, class From>
  static __device__ __forceinline__ void load(float (&to)[kCount], unsigned first, const From* from) {
    const auto vector = load_vector<kWidth>(from);
    CONVMISH_UNROLL
    for (unsigned i = 0; i < kWidth; ++i) to[first + i] = vector.lane[i];
  }

  static __device__ __forceinline__ void accumulate(const Stage& stage, unsigned channels, const Place& place,
                                                    float (&z)[kChannels][kPixels]) {
    const auto* x = &stage.x[place.row * kHaloColumns + place.column];
    const auto* taps = &stage.filter[place.k];
    for (unsigned c = 0; c < channels; ++c, x += kHalo, taps += kTaps * kTileK) {
      CONVMISH_UNROLL
      for (unsigned r = 0; r < kFilterSize; ++r) {
        const auto* row = x + r * kHaloColumns;
        float inputs[kPixels + kFilterSize - 1];
        load<4>(inputs, 0, row);
        load<4>(inputs, 4, row + 4);
        load<2>(inputs, 8, row + 8);
        CONVMISH_UNROLL
        for (unsigned s = 0; s < kFilterSize; ++s) {
          const auto* tap = taps + (r * kFilterSize + s) * kTileK;
          float weights[kChannels];
          load<4>(weights, 0, tap);
          load<4>(weights, 4, tap + channel_offset(4));
          CONVMISH_UNROLL
          for (unsigned i = 0; i < kChannels; ++i) {
            CONVMISH_UNROLL
            for (unsigned j = 0; j < kPixels; ++j) z[i][j] += inputs[j + s] * weights[i];
          }
        }
      }
    }
  }

  /// Stores one channel's outputs from `row` on, `count` of them inside the image's row. kWidth divides q: a
  /// vector lies inside or outside, and is aligned.
  template <unsigned kWidth>
  static __device__ __forceinline__ void store(float* row, const float (&outputs)[kPixels],
                                               std::int64_t count) {
    CONVMISH_UNROLL
    for (unsigned j = 0; j < kPixels; j += kWidth) {
      FloatVector<kWidth> vector;
      CONVMISH_UNROLL
      for (unsigned lane = 0; lane < kWidth; ++lane) vector.lane[lane] = outputs[j + lane];
      if (j < count) *reinterpret_cast<FloatVector<kWidth>*>(row + j) = vector;
    }
  }

  __device__ __forceinline__ void activate_and_store(const Position& own,
                                                     float (&z)[kChannels][kPixels]) const {
    const std::int64_t y_plane = shape.p() * shape.q(), count = shape.q() - own.q;
    float* const first = y + (own.n * shape.k + own.k) * y_plane + own.p * shape.q() + own.q;
    CONVMISH_UNROLL
    for (unsigned i = 0; i < kChannels; ++i) {
      const std::int64_t k = own.k + channel_offset(i);
      if (k >= shape.k) return;
      const float b = __ldg(bias + k);
      CONVMISH_UNROLL
      for (float& output : z[i]) output = mish_of_mish(output + b);
      float* const row = first + channel_offset(i) * y_plane;
      if (shape.q() % 4 == 0) {
        store<4>(row, z[i], count);
      } else if (shape.q() % 2 == 0) {
        store<2>(row, z[i], count);
      } else {
        store<1>(row, z[i], count);
      }
    }
  }

  __device__ void operator()(SharedStorage& shared) const {
    const Position tile = tile_position();
    const Place place = thread_place();
    const Position own{tile.n, tile.k + place.k, tile.p + place.row, tile.q + place.column};
    // A thread without outputs only helps to stage: whole warps of them leave the issue slots to others.
    const bool has_outputs = own.k < shape.k && own.p < shape.p() && own.q < shape.q();

    float z[kChannels][kPixels] = {};
    const auto slice = [](std::int64_t left) {
      return static_cast<unsigned>(std::min(left, std::int64_t{kSlice}));
    };
    Source from = first_source(tile);
    stage_slice(shared.stages[0], tile, from, slice(shape.c));
    unsigned current = 0;
    for (std::int64_t left = shape.c; left > 0; left -= kSlice, current ^= 1) {
      wait_for_copies();
      __syncthreads();  // the slice is there, and nobody reads the other stage any more
      if (left > kSlice) stage_slice(shared.stages[current ^ 1], tile, from, slice(left - kSlice));
      if (has_outputs) accumulate(shared.stages[current], slice(left), place, z);
    }

    if (has_outputs) activate_and_store(own, z);
  }
};

/// From [k][c][tap] to [k / tile_k][c][tap][k % tile_k], with zeros beyond k and c.
struct PackFilterKernel {
  static constexpr const char* kName = "register_blocked_pack_filter";
  static constexpr unsigned kThreads = 256;
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;

  Shape shape;
  unsigned tile_k;
  std::int64_t elements;  // of `packed`
  FastDivider by_tile_k, by_padded_reduction;
  const float* filter;
  float* packed;

  __device__ void operator()(SharedStorage&) const {
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= elements) return;
    const auto [row, in_tile] = by_tile_k.divide(i);
    const auto [tile, tap] = by_padded_reduction.divide(row);
    const std::int64_t k = tile * tile_k + in_tile;
    packed[i] = k < shape.k && tap < shape.reduction() ? filter[k * shape.reduction() + tap] : 0.0f;
  }
};

const float* pack_filter(const Problem& problem, unsigned tile_k) {
  const Shape shape = problem.shape;
  const std::int64_t padded_reduction = divide_up(shape.c, kSlice) * (kSlice * kTaps);
  const std::int64_t elements = divide_up(shape.k, tile_k) * tile_k * padded_reduction;
  auto* packed =
      static_cast<float*>(problem.memory->allocate(sizeof(float) * static_cast<std::size_t>(elements)));
  launch_kernel(PackFilterKernel{shape, tile_k, elements, FastDivider(tile_k), FastDivider(padded_reduction),
                                 problem.filter, packed},
                dim3(static_cast<unsigned>(divide_up(elements, PackFilterKernel::kThreads))), problem.stream);
  return packed;
}

template <TileConfig kTile>
Plan prepare_tile(const Problem& problem) {
  using Kernel = RegisterBlockedKernel<kTile>;
  constexpr std::int64_t kMaxGridX = std::numeric_limits<std::int32_t>::max();
  const Shape shape = problem.shape;
  const std::int64_t tiles_k = divide_up(shape.k, Kernel::kTileK);
  const std::int64_t tiles_p = divide_up(shape.p(), Kernel::kTileP);
  const std::int64_t tiles_q = divide_up(shape.q(), Kernel::kTileQ);
  const std::int64_t blocks = shape.n * tiles_p * tiles_q * tiles_k;
  const auto part = [=](std::int64_t first) {
    return dim3(static_cast<unsigned>(std::min(blocks - first, kMaxGridX)));
  };
  const auto launch = [=, filter = pack_filter(problem, Kernel::kTileK),
                       bias = problem.bias](const LaunchArgs& args) {
    for (std::int64_t first = 0; first < blocks; first += kMaxGridX)
      launch_kernel(Kernel{shape, FastDivider(tiles_k), FastDivider(tiles_q), FastDivider(tiles_p), first,
                           args.x, filter, bias, args.y},
                    part(first), args.stream);
  };
  return {.launch = launch,
          .geometry = launch_geometry<Kernel>(part(0)),
          .note = std::to_string(Kernel::kTileP) + "x" + std::to_string(Kernel::kTileQ) + " outputs of " +
                  std::to_string(Kernel::kTileK) + " channels a block"};
}

/// What a multiprocessor computes by a tile, outputs that do not exist included, though not those of whole
/// warps, which do not compute.
template <TileConfig kTile>
double computed_outputs(const Shape& shape, const DeviceInfo& device) {
  using Kernel = RegisterBlockedKernel<kTile>;
  const std::int64_t tiles_k = divide_up(shape.k, Kernel::kTileK);
  const std::int64_t blocks =
      shape.n * tiles_k * divide_up(shape.p(), Kernel::kTileP) * divide_up(shape.q(), Kernel::kTileQ);
  const std::int64_t at_once = device.kind == DeviceKind::cuda ? device.multiprocessors : 1;
  const double block_channels =
      static_cast<double>(divide_up(shape.k, kWarpChannels) * kWarpChannels) / static_cast<double>(tiles_k);
  return static_cast<double>(divide_up(blocks, at_once)) * (Kernel::kTileP * Kernel::kTileQ) * block_channels;
}

/// `time_per_output`: where all multiprocessors are full, relative to the first tile's, as an H200 takes it
/// at n64 c64 h256 w256 k128.
template <TileConfig kTile>
Configuration tile(double time_per_output) {
  using Kernel = RegisterBlockedKernel<kTile>;
  return {.name = std::to_string(Kernel::kTileP) + "x" + std::to_string(Kernel::kTileQ) + "x" +
                  std::to_string(Kernel::kTileK),
          .cost =
              [=](const Shape& shape, const DeviceInfo& device) {
                return time_per_output * computed_outputs<kTile>(shape, device);
              },
          .prepare = prepare_tile<kTile>};
}

const RegisterVariant registered{configured_variant(
    portable_variant({
        .name = "register_blocked",
        .summary = "8 columns of 8 channels a thread from registers; slices of x and filter double-buffered",
        .math = MathClass::fp32,
        .pipe = Pipe::ffma,
    }),
    {tile<TileConfig{.groups_q = 4, .warps_p = 4, .warps_k = 2}>(1.00),
     tile<TileConfig{.groups_q = 2, .warps_p = 4, .warps_k = 2}>(1.04),
     tile<TileConfig{.groups_q = 1, .warps_p = 2, .warps_k = 2}>(1.02),
     tile<TileConfig{.groups_q = 4, .warps_p = 8, .warps_k = 1}>(1.01),
     tile<TileConfig{.groups_q = 2, .warps_p = 8, .warps_k = 1}>(1.04),
     tile<TileConfig{.groups_q = 1, .warps_p = 4, .warps_k = 1}>(1.02)})};

}  // namespace
}  // namespace convmish
