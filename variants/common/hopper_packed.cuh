// The fused convolution for any shape, from packed operands (hopper_pack.cuh): an implicit GEMM in one
// dimension.
//
// Outputs are counted as the first pixels of their windows. A tile is 64 output channels x a run of pixels;
// filter tap (r, s) multiplies the same run, r w + s pixels on, read from a shifted start. What a run has of
// the last two columns and rows of an image is computed and not stored. Input channels come in slices of 16,
// one wgmma's sum, each with all 9 taps.
//
//   producers, 2 threads     bulk copies: one of a slice's pixels with their halo, one of its filter
//   a warp                   looks for the range guard's flags on the tiles' pixels
//   consumers, warpgroups    each 64 channels x kPixels pixels: wgmma, bias, Mish, Mish, store; at last, what
//                            was flagged again in fp32 (hopper_recompute.cuh)
//
// A thread block keeps its output channels, and its filter if that fits, and walks through tiles. Teams of
// consumers take tiles in turn: one is in its epilogue while another multiplies.
//
// With two fp16 terms a multiplicand there are three products. The tensor cores truncate their sums, so that
// those of high terms are taken out after each slice, while the tensor cores are at the low ones.
//
// Who waits for whom:
//   turn (named)          a team waits for the one before it to have all of its tile's slices
//   x_full, filter_full   consumers wait, for the bytes of the copies
//   x_empty               the producer of pixels waits, for the team's warps
//   filter_empty          the filter's producer waits, for the same
//   flags (named)         consumers wait, their tiles stored, for the warp that looks for flags
#pragma once

#include "variants/common/fast_divider.hpp"
#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_pack.cuh"

namespace convmish::hopper::packed {

inline constexpr int kWarpsPerGroup = 4;
inline constexpr int kMaxStages = 16;

/// kTerms: fp16 terms of a multiplicand. kPixels: of a consumer's tile.
template <int kTerms_, int kPixels_>
struct Config {
  static constexpr int kTerms = kTerms_, kPixels = kPixels_;
  static_assert(kPixels <= 128, "sums have to leave room for the epilogue");
  // As many as their sums leave room for: all but one are in their epilogues.
  static constexpr int kConsumers = kTerms == 1 ? 4 : 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kProducerRegisters = kTerms == 1 ? 32 : 56;
  static constexpr int kConsumerRegisters = kTerms == 1 ? 112 : 224;
  static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <=
                    65536 / kThreads / 8 * 8 * kThreads / 128,
                "setmaxnreg hands out what the launch allots");
  static constexpr int kTermBytes = kBlockK * kStepC * sizeof(__half);  // of a tap's filter
  static constexpr int kTapBytes = kTerms * kTermBytes;
  static constexpr int kFilterStageBytes = kTaps * kTapBytes;
  static constexpr int kGroup = 4;  // fragments that go through the activation, and out, together
  static constexpr int kOutputBytes = 16 * kGroup * 8 * sizeof(float);  // of a warp
};

/// Where the packed filter's halves are: [output block][slice][tap][term], each a matrix of 64 output x 16
/// input channels, K-major without swizzle: [8 input channels][output channel][8 halves].
template <int kTerms_>
struct SliceLayout {
  static constexpr int kTerms = kTerms_;
  int k_blocks, c_slices;

  explicit SliceLayout(const Shape& shape)
      : k_blocks(static_cast<int>((shape.k + kBlockK - 1) / kBlockK)),
        c_slices(slices(static_cast<int>(shape.c))) {}

  int output_channels() const { return k_blocks * kBlockK; }
  CONVMISH_HD int input_channels() const { return c_slices * kStepC; }
  std::int64_t bytes() const {
    return std::int64_t{k_blocks} * c_slices * Config<kTerms, 64>::kFilterStageBytes;
  }

  /// Of a half.
  __device__ __forceinline__ std::int64_t index(int k, int c, int tap, int term) const {
    const std::int64_t matrix =
        ((std::int64_t{k / kBlockK} * c_slices + c / kStepC) * kTaps + tap) * kTerms + term;
    return ((matrix * kSlicePlanes + c % kStepC / kPlaneChannels) * kBlockK + k % kBlockK) * kPlaneChannels +
           c % kPlaneChannels;
  }
};

/// The pixels of tiles. A tile is `span` pixels on from the one before, in groups of images, each of which
/// begins with a tile.
struct Tiling {
  int together;  // consumers of a team: neighbours that share a tile's stages
  // From 8 pixels of a tile to its next 8. Where 8 columns hold a row, w: the next 8 are the next row's.
  int pitch;
  int runs;                   // contiguous pieces of a slice's pixels: 1, or 3 with a row of taps each
  int run_pixels;             // of a piece, halo included
  std::int64_t group_pixels;  // from group to group
  std::int64_t group_tiles;   // tiles of a group
  std::int64_t pixel_tiles;   // tiles of the batch, for one block of output channels
  CONVMISH_HD int span(int pixels) const { return together * pixels / 8 * pitch; }
};

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  Planes planes;
  RecomputeArgs again;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to 64
  int k, p, q;
  Tiling tiling;
  int k_tiles;
  int parts;                     // thread blocks that share the pixel tiles of a block of output channels
  int part_tiles, longer_parts;  // tiles of a part; parts that have one more
  bool resident;                 // a thread block fetches its filter once
  int x_stages, filter_stages;
  int x_stage_bytes;
  FastDivider by_w{1}, by_h{1}, by_group_tiles{1};
};

/// Dynamic shared memory, whose parts depend on the shape.
template <class C>
struct SharedStorage {
  ptx::SharedAddress filter, outputs, x, places, x_full, x_empty, filter_full, filter_empty, flagged, affine;
  static constexpr int kBarrierBytes = 4 * kMaxStages * 8, kFlaggedBytes = 8;
  static constexpr int kAffineBytes = kBlockK * sizeof(float2);  // of a consumer

  static constexpr int output_bytes() { return C::kConsumers * kWarpsPerGroup * C::kOutputBytes; }
  static constexpr int place_bytes() { return C::kConsumers * C::kPixels * 8; }
  static std::int64_t bytes(int filter_stages, int x_stages, std::int64_t x_stage_bytes) {
    return filter_stages * std::int64_t{C::kFilterStageBytes} + output_bytes() + x_stages * x_stage_bytes +
           place_bytes() + kBarrierBytes + kFlaggedBytes + C::kConsumers * kAffineBytes;
  }
  __device__ SharedStorage(const Args& args, ptx::SharedAddress memory)
      : filter(memory),
        outputs(filter + args.filter_stages * C::kFilterStageBytes),
        x(outputs + output_bytes()),
        places(x + args.x_stages * args.x_stage_bytes),
        x_full(places + place_bytes()),
        x_empty(x_full + kMaxStages * 8),
        filter_full(x_empty + kMaxStages * 8),
        filter_empty(filter_full + kMaxStages * 8),
        flagged(filter_empty + kMaxStages * 8),
        affine(flagged + kFlaggedBytes) {}
};

/// The tiles of a thread block: every `parts`-th.
struct Walk {
  int k_tile, first, step, tiles;

  __device__ explicit Walk(const Args& args)
      : k_tile(static_cast<int>(blockIdx.x) % args.k_tiles),
        first(static_cast<int>(blockIdx.x) / args.k_tiles),
        step(args.parts),
        tiles(args.part_tiles + (first < args.longer_parts ? 1 : 0)) {}
  __device__ std::int64_t tile(int i) const { return first + std::int64_t{i} * step; }
};

/// Where a tile is: its first pixel, and the first that is another group's.
struct TilePlace {
  std::int64_t first, end;

  __device__ TilePlace(const Args& args, std::int64_t tile, int span) {
    const auto [group, tile_in_group] = args.by_group_tiles.divide(tile);
    const std::int64_t start = group * args.tiling.group_pixels;
    first = start + tile_in_group * span;
    end = min(start + args.tiling.group_pixels, args.planes.pixels());
  }
};

/// A place in a ring and the parity of the pass through it.
struct StageCursor {
  int stage;
  std::uint32_t parity;

  __device__ StageCursor(int count, int depth) : stage(count % depth), parity(count / depth % 2) {}
  __device__ __forceinline__ void advance(int depth) {
    if (++stage == depth) stage = 0, parity ^= 1;
  }
};

// --- producers -------------------------------------------------------------------------------------------
//
// A lone thread beside busy consumers takes a dozen cycles an instruction, and a slice's products no more
// than 300 to 1000 cycles: what does not change from slice to slice is worked out beforehand, and pixels do
// not wait behind the filter.

template <class C>
__device__ __forceinline__ void produce_filter(const Args& args, const SharedStorage<C>& shared,
                                               const Walk& walk) {
  const int c_slices = slices(args.planes.c), rounds = args.resident ? 1 : walk.tiles;
  const char* const filter = reinterpret_cast<const char*>(args.filter) +
                             std::int64_t{walk.k_tile} * c_slices * C::kFilterStageBytes;
  StageCursor at(0, args.filter_stages);
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
    const char* source = filter;
#pragma unroll 1
    for (int slice = 0; slice < c_slices; ++slice, source += C::kFilterStageBytes) {
      const ptx::SharedAddress full = shared.filter_full + at.stage * 8;
      ptx::mbarrier_wait(shared.filter_empty + at.stage * 8, at.parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, C::kFilterStageBytes);
      ptx::bulk_copy_from_global(shared.filter + at.stage * C::kFilterStageBytes, source,
                                 C::kFilterStageBytes, full);
      at.advance(args.filter_stages);
    }
  }
}

template <class C>
__device__ __forceinline__ void produce_pixels(const Args& args, const SharedStorage<C>& shared,
                                               const Walk& walk) {
  const int c_slices = slices(args.planes.c), span = args.tiling.span(C::kPixels);
  const std::int64_t plane_bytes = args.planes.plane_pixels() * kGranuleBytes,
                     term_bytes = args.planes.planes() * plane_bytes,
                     row_bytes = std::int64_t{args.planes.w} * kGranuleBytes;
  const std::uint32_t run_bytes = args.tiling.run_pixels * kGranuleBytes;
  StageCursor at(0, args.x_stages);
  ptx::wait_for_kernel_before();
#pragma unroll 1
  for (int i = 0; i < walk.tiles; ++i) {
    const char* source = reinterpret_cast<const char*>(args.planes.granules) +
                         TilePlace(args, walk.tile(i), span).first * kGranuleBytes;
#pragma unroll 1
    for (int slice = 0; slice < c_slices; ++slice, source += kSlicePlanes * plane_bytes) {
      const ptx::SharedAddress full = shared.x_full + at.stage * 8;
      ptx::SharedAddress destination = shared.x + at.stage * args.x_stage_bytes;
      ptx::mbarrier_wait(shared.x_empty + at.stage * 8, at.parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, args.x_stage_bytes);
#pragma unroll
      for (int term = 0; term < C::kTerms; ++term)
#pragma unroll
        for (int plane = 0; plane < kSlicePlanes; ++plane, destination += run_bytes) {
          const char* from = source + term * term_bytes + plane * plane_bytes;
          ptx::bulk_copy_from_global(destination, from, run_bytes, full);
#pragma unroll 1
          for (int run = 1; run < args.tiling.runs; ++run)
            ptx::bulk_copy_from_global(destination += run_bytes, from += row_bytes, run_bytes, full);
        }
      at.advance(args.x_stages);
    }
  }
}

// --- consumers -------------------------------------------------------------------------------------------

template <class C>
using Sums = SumsOf<C::kPixels>;

/// A consumer warp's hold on stages: those of the slice before may still be read.
template <class C>
class Stages {
 public:
  __device__ Stages(const Args& args, const SharedStorage<C>& shared, int x_count, int filter_count)
      : args_(args), shared_(shared), x_(x_count, args.x_stages), filter_(filter_count, args.filter_stages) {}

  __device__ __forceinline__ void wait() const {
    ptx::mbarrier_wait(shared_.x_full + x_.stage * 8, x_.parity);
    ptx::mbarrier_wait(shared_.filter_full + filter_.stage * 8, args_.resident ? 0 : filter_.parity);
  }
  __device__ __forceinline__ ptx::SharedAddress x() const {
    return shared_.x + x_.stage * args_.x_stage_bytes;
  }
  __device__ __forceinline__ ptx::SharedAddress filter() const {
    return shared_.filter + filter_.stage * C::kFilterStageBytes;
  }
  __device__ __forceinline__ void advance() {
    before_x_ = x_.stage, before_filter_ = filter_.stage;
    x_.advance(args_.x_stages), filter_.advance(args_.filter_stages);
  }
  /// The products of the slice before the last advance() are done.
  __device__ __forceinline__ void release() const {
    if (before_x_ < 0 || threadIdx.x % 32 != 0) return;
    ptx::mbarrier_arrive(shared_.x_empty + before_x_ * 8);
    if (!args_.resident) ptx::mbarrier_arrive(shared_.filter_empty + before_filter_ * 8);
  }

 private:
  const Args& args_;
  const SharedStorage<C>& shared_;
  StageCursor x_, filter_;
  int before_x_ = -1, before_filter_ = -1;
};

/// Descriptors of a slice's operands.
template <class C>
struct Slice {
  std::uint64_t filter, pixels, row_step, low_pixels;

  __device__ Slice(const Args& args, const Stages<C>& stages, int first) {
    const Tiling& tiling = args.tiling;
    const int plane_bytes = tiling.runs * tiling.run_pixels * kGranuleBytes;
    filter = ptx::matrix_descriptor(stages.filter(), kBlockK * kGranuleBytes, 8 * kGranuleBytes,
                                    ptx::Swizzle::none);
    pixels = ptx::matrix_descriptor(stages.x() + first * kGranuleBytes, plane_bytes,
                                    tiling.pitch * kGranuleBytes, ptx::Swizzle::none);
    row_step = ptx::descriptor_step((tiling.runs == 1 ? args.planes.w : tiling.run_pixels) * kGranuleBytes);
    low_pixels = ptx::descriptor_step(kSlicePlanes * plane_bytes);
  }
  __device__ __forceinline__ std::uint64_t filter_at(int tap, int term) const {
    return filter + ptx::descriptor_step(tap * C::kTapBytes + term * C::kTermBytes);
  }
  __device__ __forceinline__ std::uint64_t pixels_at(int tap, int term) const {
    return pixels + tap / kFilterSize * row_step + ptx::descriptor_step(tap % kFilterSize * kGranuleBytes) +
           term * low_pixels;
  }
};

inline constexpr int kPlacesBarrier = 1;  // named barriers, one a consumer; 0 is __syncthreads
inline constexpr int kTurnBarrier = 5;    // and on, one a team
inline constexpr int kFlagsBarrier = 9;

/// Turns of teams. A barrier's parity tells one pass through the ring from the next only, so that nobody may
/// wait for a stage before its last use has been waited for.
struct Turn {
  int team, next_team, threads;  // threads: of two teams
  bool waits, passes;

  __device__ __forceinline__ void wait() const {
    if (waits) ptx::named_barrier_sync(kTurnBarrier + team, threads);
  }
  __device__ __forceinline__ void pass() const {
    if (passes) ptx::named_barrier_arrive(kTurnBarrier + next_team, threads);
  }
};

/// sums = the tile's products, scaled.
template <class C>
__device__ __forceinline__ void multiply(const Args& args, Sums<C>& sums, Stages<C>& stages, int first,
                                         const Turn& turn) {
  turn.wait();
  const int c_slices = slices(args.planes.c);
  if constexpr (C::kTerms == 1) {
#pragma unroll 1
    for (int i = 0; i < c_slices; ++i) {
      stages.wait();
      if (i == c_slices - 1) turn.pass();
      const Slice<C> slice(args, stages, first);
      ptx::wgmma_fence();
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap)
        ptx::wgmma_m64k16<C::kPixels>(sums, slice.filter_at(tap, 0), slice.pixels_at(tap, 0),
                                      i > 0 || tap > 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<1>();
      stages.release();
      stages.advance();
    }
    ptx::wgmma_wait_group<0>();
    stages.release();
  } else {
    Sums<C> high, low;
#pragma unroll
    for (float& sum : sums) sum = 0;
#pragma unroll 1
    for (int i = 0; i < c_slices; ++i) {
      stages.wait();
      if (i == c_slices - 1) turn.pass();
      const Slice<C> slice(args, stages, first);
      ptx::wgmma_fence();
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap)
        ptx::wgmma_m64k16<C::kPixels>(high, slice.filter_at(tap, 0), slice.pixels_at(tap, 0), tap > 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<1>();
      stages.release();
      stages.advance();
      ptx::wgmma_fence();
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        ptx::wgmma_m64k16<C::kPixels>(low, slice.filter_at(tap, 1), slice.pixels_at(tap, 0),
                                      i > 0 || tap > 0);
        ptx::wgmma_m64k16<C::kPixels>(low, slice.filter_at(tap, 0), slice.pixels_at(tap, 1), true);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<1>();
#pragma unroll
      for (int j = 0; j < C::kPixels / 2; ++j) sums[j] += high[j];
    }
    ptx::wgmma_wait_group<0>();
    stages.release();
#pragma unroll
    for (int j = 0; j < C::kPixels / 2; ++j) sums[j] = __fmaf_rn(low[j], kLowScale, sums[j]);
  }
}

/// Where the pixels of a consumer's share of a tile are in y, in channel 0, to shared memory; 0: nowhere.
template <class C>
__device__ __forceinline__ void locate_output(const Args& args, ptx::SharedAddress places, std::int64_t tile,
                                              int first, int consumer) {
  const TilePlace place(args, tile, args.tiling.span(C::kPixels));
  ptx::named_barrier_sync(kPlacesBarrier + consumer, 128);  // the last tile's places have been read
  for (int i = threadIdx.x % 128; i < C::kPixels; i += 128) {
    const std::int64_t pixel = place.first + first + i / 8 * args.tiling.pitch + i % 8;
    const auto [batch_row, column] = args.by_w.divide(pixel);
    const auto [image, row] = args.by_h.divide(batch_row);
    const bool live = pixel < place.end && column < args.q && row < args.p;
    const float* const at = args.again.y + (image * args.k * args.p + row) * args.q + column;
    ptx::store_shared(places + i * 8, live ? reinterpret_cast<std::int64_t>(at) : std::int64_t{0});
  }
  ptx::named_barrier_sync(kPlacesBarrier + consumer, 128);
}

/// Scale and bias to shared memory: from global memory each epilogue would wait for them, and longer than for
/// anything else.
__device__ __forceinline__ void load_affine(const Args& args, ptx::SharedAddress affine, int k_tile) {
  const int i = threadIdx.x % 128;
  if (i >= kBlockK) return;
  const ChannelAffine from = args.affine[k_tile * kBlockK + i];
  ptx::store_shared(affine + i * sizeof(float2), make_float2(from.scale, from.bias));
}

/// Bias, Mish, Mish and stores. A warp has 16 channels; it passes kGroup fragments at a time, 32 pixels,
/// through its piece of shared memory, so that a store takes runs of 32 pixels of a channel: the L2 is asked
/// for each line of 128 bytes that a store touches, and for each sector. kWidth: neighbouring pixels of a
/// lane's store; 2 where rows are even, since both exist or neither, as a tile begins at an even column.
template <class C, int kWidth>
__device__ __forceinline__ void store_tile(const Args& args, ptx::SharedAddress places,
                                           ptx::SharedAddress outputs, ptx::SharedAddress affines,
                                           const Sums<C>& sums, int k_first) {
  constexpr int kGroup = C::kGroup, kFragments = C::kPixels / 8, kRowBytes = kGroup * 8 * sizeof(float);
  constexpr int kLanes = kGroup * 8 / kWidth, kRows = 32 / kLanes;  // of a channel; channels a store
  const int lane = threadIdx.x % 32, row = lane / 4, part = lane / kLanes;
  const float2 affine[2] = {ptx::load_shared_float2(affines + row * sizeof(float2)),
                            ptx::load_shared_float2(affines + (row + 8) * sizeof(float2))};
  const std::int64_t plane_bytes = std::int64_t{args.p} * args.q * sizeof(float);
  // Fragments of a row are permuted by its number, so that neither side has bank conflicts.
  const ptx::SharedAddress fragment = outputs + row * kRowBytes + row % 4 * 32 + lane % 4 * 8;
  const ptx::SharedAddress pixels = lane % kLanes * kWidth * sizeof(float);
  places += lane % kLanes * kWidth * 8;
  const int channels = args.k - k_first - part;
  const std::int64_t first_channel = (k_first + part) * plane_bytes;
#pragma unroll
  for (int first = 0; first < kFragments; first += kGroup) {
    float v[4 * kGroup];
#pragma unroll
    for (int i = 0; i < 4 * kGroup; ++i)
      v[i] = first + i / 4 < kFragments
                 ? __fmaf_rn(sums[4 * first + i], affine[i / 2 % 2].x, affine[i / 2 % 2].y)
                 : 0.0f;
    mish_of_mish_of_ln2(v);
    __syncwarp();  // the last group has been read
#pragma unroll
    for (int i = 0; i < 2 * kGroup; ++i)
      ptx::store_shared((fragment ^ i / 2 * 32) + i % 2 * 8 * kRowBytes, make_float2(v[2 * i], v[2 * i + 1]));
    __syncwarp();
    const bool inside = first + kGroup <= kFragments || first * 8 + lane % kLanes * kWidth < C::kPixels;
    const std::int64_t place = inside ? ptx::load_shared_s64(places + first * 8 * 8) : 0;
    const int stored = place == 0 ? 0 : channels;
    std::int64_t at = place + first_channel;
#pragma unroll
    for (int i = 0; i < 16; i += kRows, at += kRows * plane_bytes) {
      const ptx::SharedAddress from = outputs + (i + part) * kRowBytes + (pixels ^ (i + part) % 4 * 32);
      if (i >= stored) continue;
      if constexpr (kWidth == 2)
        ptx::store_global(reinterpret_cast<float*>(at), ptx::load_shared_float2(from));
      else
        ptx::store_global(reinterpret_cast<float*>(at), ptx::load_shared_float(from));
    }
  }
}

template <class C>
__device__ __forceinline__ void consume(const Args& args, const SharedStorage<C>& shared, const Walk& walk,
                                        int consumer, int warp) {
  const int c_slices = slices(args.planes.c);
  const int teams = C::kConsumers / args.tiling.together, team = consumer / args.tiling.together;
  const int first = consumer % args.tiling.together * (C::kPixels / 8) * args.tiling.pitch;
  const int k_first = walk.k_tile * kBlockK + 16 * warp;
  const ptx::SharedAddress places = shared.places + consumer * C::kPixels * 8,
                           outputs = shared.outputs + (consumer * kWarpsPerGroup + warp) * C::kOutputBytes;
  const ptx::SharedAddress affine = shared.affine + consumer * SharedStorage<C>::kAffineBytes;
  load_affine(args, affine, walk.k_tile);  // before the barriers of locate_output()
  for (int i = team; i < walk.tiles; i += teams) {
    locate_output<C>(args, places, walk.tile(i), first, consumer);
    Sums<C> sums;
    Stages<C> stages(args, shared, i * c_slices, args.resident ? 0 : i * c_slices);
    multiply<C>(args, sums, stages, first,
                Turn{.team = team,
                     .next_team = (team + 1) % teams,
                     .threads = 2 * 128 * args.tiling.together,
                     .waits = teams > 1 && i > 0,
                     .passes = teams > 1 && i + 1 < walk.tiles});
    if (args.q % 2 == 0)
      store_tile<C, 2>(args, places, outputs, affine + 16 * warp * sizeof(float2), sums, k_first);
    else
      store_tile<C, 1>(args, places, outputs, affine + 16 * warp * sizeof(float2), sums, k_first);
  }
}

// --- what fp16 cannot serve ------------------------------------------------------------------------------

template <class C>
__device__ __forceinline__ OutputRows outputs_of(const Args& args, std::int64_t tile) {
  const TilePlace place(args, tile, args.tiling.span(C::kPixels));
  return {args.planes, place.first, place.end, args.tiling.together * C::kPixels / 8, args.tiling.pitch};
}

template <class C>
inline constexpr int kFlagsThreads = 32 + 128 * C::kConsumers;

/// For a warp: whether any of the tiles has a flag, to shared memory.
template <class C>
__device__ __forceinline__ void watch_flags(const Args& args, const SharedStorage<C>& shared,
                                            const Walk& walk) {
  ptx::wait_for_kernel_before();
  bool flagged = false;
#pragma unroll 1
  for (int i = 0; i < walk.tiles && !flagged; ++i) {
    const OutputRows outputs = outputs_of<C>(args, walk.tile(i));
    flagged = is_flagged(outputs.flags(), outputs.flag_count());
  }
  if (threadIdx.x % 32 == 0) ptx::store_shared(shared.flagged, static_cast<int>(flagged));
  ptx::named_barrier_arrive(kFlagsBarrier, kFlagsThreads<C>);
}

/// For the consumers: the flagged outputs of their tiles, after those are stored, in fp32, an output a warp.
template <class C>
__device__ __forceinline__ void recompute_tiles(const Args& args, const SharedStorage<C>& shared) {
  ptx::named_barrier_sync(kFlagsBarrier, kFlagsThreads<C>);
  if (ptx::load_shared_int(shared.flagged) == 0) return;
  const Walk walk(args);  // anew: registers are scarce in between
  const Channels channels{walk.k_tile * kBlockK, min((walk.k_tile + 1) * kBlockK, args.k)};
#pragma unroll 1
  for (int i = 0; i < walk.tiles; ++i)
    recompute_if_flagged<C::kTerms>(args.again, outputs_of<C>(args, walk.tile(i)), channels,
                                    threadIdx.x / 32 - kWarpsPerGroup, kWarpsPerGroup * C::kConsumers);
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1) kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const SharedStorage<C> shared(args, ptx::shared_address(memory));
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);
  const Walk walk(args);

  if (threadIdx.x == 0) {
    const int team_warps = args.tiling.together * kWarpsPerGroup;
    for (int i = 0; i < args.x_stages; ++i) {
      ptx::mbarrier_init(shared.x_full + i * 8, 1);
      ptx::mbarrier_init(shared.x_empty + i * 8, team_warps);
    }
    for (int i = 0; i < args.filter_stages; ++i) {
      ptx::mbarrier_init(shared.filter_full + i * 8, 1);
      ptx::mbarrier_init(shared.filter_empty + i * 8, team_warps);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (group == 0) {
    ptx::setmaxnreg_dec<C::kProducerRegisters>();
    if (warp < 2 && ptx::elect_one()) {
      if (warp == 0)
        produce_pixels(args, shared, walk);
      else
        produce_filter(args, shared, walk);
    }
    __syncwarp();
    if (warp == 2) watch_flags<C>(args, shared, walk);
  } else {
    ptx::setmaxnreg_inc<C::kConsumerRegisters>();
    consume<C>(args, shared, walk, group - 1, warp);
    recompute_tiles<C>(args, shared);
  }
}

}  // namespace convmish::hopper::packed
