// The fused convolution for any number of input channels and any image: filter and input streamed by blocks
// of 64 input channels, tiles of whole rows.
//
// A thread block computes tiles of kM x 64 output channels x `rows` x `columns` outputs. The tile's input,
// halo included, lies row after row in shared memory, so that an output's position in it counts pixels of the
// product: filter tap (r, s) is the same run of pixels, r input rows and s pixels farther on. The two last
// pixels of a row give products that no output needs. Rows are counted through the batch: a tile of small
// images spans several.
//
//   producer, 1 warpgroup    x: global fp32 -> registers -> fp16 -> stage
//   consumers, warpgroups    each 64 channels x 128 pixels of the tile, all at the same time; one thread of
//                            them keeps the ring of filter taps filled, by bulk copies from global memory
//
// With one fp16 term a multiplicand, four consumers add up all taps in the tensor cores. With two terms there
// are three products a tap, and the tensor cores' sums, which they truncate, would leave the class of fp32
// where there are many channels: two consumers, with the registers of four, take each tap's sums out and add
// them up themselves, while the other keeps the tensor cores busy.
//
// Who waits for whom:
//   x_full, filter_full   consumers wait, for the 4 producer warps or the bytes of the copies
//   x_empty               producer waits, for all consumer warps
//   filter_empty          the filling thread waits for all consumer warps, kFeedLag taps after the stage's
//                         last use, so hardly ever
// Stages run on through the tiles: the next tile's operands are loaded during the epilogue.
#pragma once

#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"

namespace convmish::hopper::streamed {

inline constexpr int kWarpsPerGroup = 4;

/// Tile sizes. kTerms: fp16 terms of a multiplicand. kM: blocks of 64 output channels; the consumers that
/// this leaves take more pixels.
template <int kTerms_, int kM_>
struct Config {
  static_assert(kTerms_ == 1 || kM_ == 1, "the room is for more pixels: their filter taps are shared");
  static constexpr int kTerms = kTerms_, kM = kM_;
  static constexpr int kConsumers = kTerms == 1 ? 4 : 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kProducerRegisters = kTerms == 1 ? 64 : 88;
  static constexpr int kConsumerRegisters = kTerms == 1 ? 104 : 208;
  static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <=
                    65536 / kThreads / 8 * 8 * kThreads / 128,
                "setmaxnreg hands out what the launch allots");
  static constexpr int kTilePixels = kConsumers / kM * kBlockPixels;
  // Input pixels of a stage: enough for a halo of two rows at widths up to about a fifth of the tile.
  static constexpr int kStagePixels = kTerms == 2 ? 344 : kM == 1 ? 704 : 448;
  static constexpr int kStages = 2;
  static constexpr int kTapStages = kTerms == 2 ? 3 : kM == 1 ? 5 : 6;
  static constexpr int kFeedLag = kTerms == 2 ? 1 : 2;  // taps between a stage's last use and its refill
  static constexpr int kTapTermsBytes = kTerms * kTapBytes;
  static constexpr int kTapStageBytes = kM * kTapTermsBytes;
  static constexpr int kPlaneBytes = kStagePixels * kGranuleBytes;
};

/// How far the thread that fills the ring of filter taps has come. In shared memory, to keep it out of the
/// registers of all the others.
struct FilterFeed {
  std::int64_t tile;
  const char *next_tap, *tile_end;
  int stage;
  std::uint32_t parity;
};

template <class C>
struct SharedStorage {
  // A product's unneeded pixels are read past a plane, and past the last stage: from the filter.
  alignas(128) __half x[C::kStages][C::kTerms][kPlanes][C::kStagePixels][kPlaneChannels];
  alignas(1024) __half filter[C::kTapStages][C::kM][C::kTerms][kBlockK][kBlockC];
  std::int64_t x_offset[C::kStagePixels];  // of a stage's pixels from x, in channel 0; < 0: none
  alignas(16) std::int64_t
      y_offset[C::kConsumers][kBlockPixels];  // of a tile's pixels from y, in channel 0; < 0: none
  FilterFeed feed;
  std::uint64_t x_full[C::kStages], x_empty[C::kStages];
  std::uint64_t filter_full[C::kTapStages], filter_empty[C::kTapStages];
  // At most: the tile, from a start 2 input rows and 2 pixels on. A stage holds 3 input rows at least.
  static_assert((C::kTilePixels + C::kStagePixels * 2 / 3 + 2) * kGranuleBytes <=
                C::kTapStages * C::kTapStageBytes);
};
static_assert(sizeof(SharedStorage<Config<1, 1>>) <= 232448 &&
                  sizeof(SharedStorage<Config<1, 2>>) <= 232448 &&
                  sizeof(SharedStorage<Config<2, 1>>) <= 232448,
              "232448 B: sm_90 opt-in limit");

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  const float* x;
  float* y;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to 128
  std::uint8_t* raised;         // [unit][input block][producer warp]: the range guard's flags
  int n, c, h, w, k, p, q;
  int rows, columns;       // outputs of a unit: a tile's place, whatever its channels
  int strips;              // units side by side
  std::int64_t row_units;  // units one below the other
  int k_tiles;             // tiles of a unit

  CONVMISH_HD int stage_columns() const { return columns + kFilterSize - 1; }
  CONVMISH_HD std::int64_t units() const { return row_units * strips; }
  CONVMISH_HD std::int64_t tiles() const { return units() * k_tiles; }
};

/// What the range guard's flags mean, for the second pass.
struct Units {
  Args args;

  CONVMISH_HD std::int64_t count() const { return args.units(); }
  __device__ int flag_count() const { return input_blocks(args.c) * kWarpsPerGroup; }
  __device__ OutputUnit unit(std::int64_t i) const {
    return {.first_row = i / args.strips * args.rows,
            .first_column = static_cast<int>(i % args.strips) * args.columns,
            .rows = args.rows,
            .columns = args.columns,
            .flags = args.raised + i * flag_count()};
  }
  __device__ Granule granule(int flag) const {
    constexpr int kChannels = kBlockC / kWarpsPerGroup;
    return {.first_row = 0,
            .rows = args.rows + kFilterSize - 1,
            .first_channel = flag * kChannels,
            .channels = kChannels};
  }
};

struct TilePlace {
  std::int64_t unit, first_row;  // rows counted through the batch
  int first_column, k_tile;

  __device__ TilePlace(const Args& args, std::int64_t tile) {
    unit = tile / args.k_tiles;  // a unit's tiles are neighbours in time: its input stays in the L2
    k_tile = static_cast<int>(tile % args.k_tiles);
    first_row = unit / args.strips * args.rows;
    first_column = static_cast<int>(unit % args.strips) * args.columns;
  }
};

/// A place in a ring of kDepth stages and the parity of the pass through it.
template <int kDepth>
struct StageCursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kDepth) stage = 0, parity ^= 1;
  }
};

// --- producer --------------------------------------------------------------------------------------------

inline constexpr int kInFlight = 4;  // granules a lane has loads out for: 32 loads
inline constexpr int kBatchPixels = 32 * kInFlight;
inline constexpr int kPlanesPerWarp = kPlanes / kWarpsPerGroup;
inline constexpr int kProducerBarrier = 1;  // named barrier; 0 is __syncthreads
inline constexpr int kConsumerBarrier = 2;  // and on, one a consumer

/// Where the pixels of a tile's input are in x.
template <class C>
__device__ __forceinline__ void locate_input(const Args& args, SharedStorage<C>& shared,
                                             const TilePlace& place) {
  const int stage_columns = args.stage_columns();
  for (int i = threadIdx.x % 128; i < C::kStagePixels; i += 128) {
    const int row = i / stage_columns, column = place.first_column + i % stage_columns;
    const std::int64_t batch_row = place.first_row + row, image = batch_row / args.h;
    const bool exists = row < args.rows + kFilterSize - 1 && image < args.n && column < args.w;
    shared.x_offset[i] =
        exists ? (image * args.c * args.h + batch_row % args.h) * args.w + column : std::int64_t{-1};
  }
}

template <class C>
__device__ __forceinline__ void produce(const Args& args, SharedStorage<C>& shared, int warp) {
  const int lane = threadIdx.x % 32;
  const int c_blocks = input_blocks(args.c);
  const int stage_pixels = (args.rows + kFilterSize - 1) * args.stage_columns();
  const int plane_batches = (stage_pixels + kBatchPixels - 1) / kBatchPixels;
  const std::int64_t channel_stride = std::int64_t{args.h} * args.w;

  // A unit's other tiles and its neighbours read the same input again: evict_last.
  const auto load = [&](float(&granule)[kPlaneChannels], int c_block, int plane, int pixel) {
    const int first_channel = c_block * kBlockC + plane * kPlaneChannels,
              live_channels = args.c - first_channel;
    const std::int64_t offset = pixel < stage_pixels ? shared.x_offset[pixel] : -1;
    const bool live = offset >= 0;
    const float* source = args.x + offset + first_channel * channel_stride;
    asm volatile("" : "+l"(source));
    if (live_channels >= kPlaneChannels) {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += channel_stride)
        granule[c] = live ? ptx::load_global_once(source, ptx::kEvictLast) : 0.0f;
    } else {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += channel_stride)
        granule[c] = live && c < live_channels ? ptx::load_global_once(source, ptx::kEvictLast) : 0.0f;
    }
  };

  StageCursor<C::kStages> cursor;
  for (std::int64_t tile = blockIdx.x; tile < args.tiles(); tile += gridDim.x) {
    const TilePlace place(args, tile);
    ptx::named_barrier_sync(kProducerBarrier, 128);  // the last tile's offsets have been read
    locate_input(args, shared, place);
    ptx::named_barrier_sync(kProducerBarrier, 128);

    float granules[kInFlight][kPlaneChannels];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) load(granules[i], 0, warp * kPlanesPerWarp, 32 * i + lane);
    for (int c_block = 0; c_block < c_blocks; ++c_block) {
      RangeGuard guard;
      int plane = 0, first_pixel = lane;
      for (int batches = kPlanesPerWarp * plane_batches; batches > 0; --batches) {
        int next_plane = plane, next_pixel = first_pixel + kBatchPixels, next_block = c_block;
        if (next_pixel >= plane_batches * kBatchPixels) {
          next_pixel = lane;
          if (++next_plane == kPlanesPerWarp) next_plane = 0, ++next_block;
        }
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
          // The registers of a granule are free as soon as it is converted: its successor's loads go out at
          // once.
#pragma unroll
          for (int c = 0; c < kPlaneChannels; ++c) guard.see(granules[i][c]);
          uint4 converted[C::kTerms];
          convert_granule(granules[i], converted);
          keep_in_registers(converted);
          if (next_block < c_blocks)
            load(granules[i], next_block, warp * kPlanesPerWarp + next_plane, next_pixel + 32 * i);
          if (i == 0 && plane == 0 && first_pixel == lane)
            ptx::mbarrier_wait(ptx::shared_address(&shared.x_empty[cursor.stage]), cursor.parity ^ 1);
          if (first_pixel + 32 * i < C::kStagePixels)
#pragma unroll
            for (int term = 0; term < C::kTerms; ++term)
              ptx::store_shared(
                  ptx::shared_address(
                      shared.x[cursor.stage][term][warp * kPlanesPerWarp + plane][first_pixel + 32 * i]),
                  converted[term]);
        }
        plane = next_plane, first_pixel = next_pixel;
      }
      const bool raised = __any_sync(~0u, guard.raised());
      ptx::fence_proxy_async();
      __syncwarp();
      if (lane == 0) {
        ptx::mbarrier_arrive(ptx::shared_address(&shared.x_full[cursor.stage]));
        args.raised[(place.unit * c_blocks + c_block) * kWarpsPerGroup + warp] = raised;
      }
      cursor.advance();
    }
  }
}

// --- consumers -------------------------------------------------------------------------------------------

template <class C>
__device__ __forceinline__ std::int64_t filter_block_bytes(const Args& args) {
  return std::int64_t{input_blocks(args.c)} * kTaps * C::kTapTermsBytes;
}

template <class C>
__device__ inline void open_feed_tile(const Args& args, FilterFeed& feed, std::int64_t tile) {
  feed.tile = tile;
  feed.next_tap =
      reinterpret_cast<const char*>(args.filter) + tile % args.k_tiles * C::kM * filter_block_bytes<C>(args);
  feed.tile_end = feed.next_tap + filter_block_bytes<C>(args);
}

/// Fetches the next filter tap of this thread block's tiles, in the order of their use, once the tap that its
/// stage held has been used. One thread does it, once a tap.
template <class C>
__device__ inline void fetch_tap(const Args& args, SharedStorage<C>& shared) {
  FilterFeed& feed = shared.feed;
  if (feed.tile >= args.tiles()) return;
  const ptx::SharedAddress full = ptx::shared_address(&shared.filter_full[feed.stage]);
  ptx::mbarrier_wait(ptx::shared_address(&shared.filter_empty[feed.stage]), feed.parity ^ 1);
  ptx::mbarrier_arrive_expect_tx(full, C::kTapStageBytes);
#pragma unroll
  for (int m = 0; m < C::kM; ++m)
    ptx::bulk_copy_from_global(ptx::shared_address(shared.filter[feed.stage][m]),
                               feed.next_tap + m * filter_block_bytes<C>(args), C::kTapTermsBytes, full);
  if (++feed.stage == C::kTapStages) feed.stage = 0, feed.parity ^= 1;
  feed.next_tap += C::kTapTermsBytes;
  if (feed.next_tap == feed.tile_end) open_feed_tile<C>(args, feed, feed.tile + gridDim.x);
}

template <class C>
__device__ inline void start_feed(const Args& args, SharedStorage<C>& shared) {
  shared.feed.stage = 0;
  shared.feed.parity = 0;
  open_feed_tile<C>(args, shared.feed, blockIdx.x);
  for (int i = 0; i < C::kTapStages - C::kFeedLag; ++i) fetch_tap(args, shared);
}

template <class C>
struct ConsumerCursors {
  StageCursor<C::kStages> x;
  StageCursor<C::kTapStages> filter;
};

/// One tap of two-term multiplicands: sums += filter x pixels, without the product of the two low terms. The
/// tensor cores truncate their sums; taken out after every tap, theirs are of 64 products at most.
template <class C>
__device__ __forceinline__ void mma_split_tap(Accumulator& sums, std::uint64_t filter, std::uint64_t pixels) {
  constexpr std::uint64_t kLowFilter = ptx::descriptor_step(kTapBytes),
                          kLowPixels = ptx::descriptor_step(kPlanes * C::kPlaneBytes);
  Accumulator products;
  const auto compute = [&] {
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  };
  ptx::wgmma_fence();
  mma_tap(products, filter, pixels + kLowPixels, C::kPlaneBytes, true);
  mma_tap(products, filter + kLowFilter, pixels, C::kPlaneBytes, false);
  compute();
#pragma unroll
  for (int i = 0; i < kBlockPixels / 2; ++i) sums[i] = __fmaf_rn(products[i], kLowScale, sums[i]);
  ptx::wgmma_fence();
  mma_tap(products, filter, pixels, C::kPlaneBytes, true);
  compute();
#pragma unroll
  for (int i = 0; i < kBlockPixels / 2; ++i) sums[i] += products[i];
}

/// sums = filter x input over all input blocks and taps.
template <class C>
__device__ __forceinline__ void mma_stage(Accumulator& sums, const Args& args, SharedStorage<C>& shared,
                                          ConsumerCursors<C>& at, bool feeds, int m, int first_pixel) {
  const int c_blocks = input_blocks(args.c);
  const bool elected = threadIdx.x % 32 == 0;
  const std::uint64_t row_step = ptx::descriptor_step(args.stage_columns() * kGranuleBytes);
  int unreleased_tap = -1, unreleased_x = -1;  // stages of the tap before, which may still be read
  const auto release = [&] {
    if (elected && unreleased_tap >= 0)
      ptx::mbarrier_arrive(ptx::shared_address(&shared.filter_empty[unreleased_tap]));
    if (elected && unreleased_x >= 0)
      ptx::mbarrier_arrive(ptx::shared_address(&shared.x_empty[unreleased_x]));
  };
  if constexpr (C::kTerms == 2) {
#pragma unroll
    for (float& sum : sums) sum = 0;
  }
#pragma unroll 1
  for (int c_block = 0; c_block < c_blocks; ++c_block) {
    ptx::mbarrier_wait(ptx::shared_address(&shared.x_full[at.x.stage]), at.x.parity);
    std::uint64_t row_pixels = pixel_descriptor(
        ptx::shared_address(shared.x[at.x.stage]) + first_pixel * kGranuleBytes, C::kPlaneBytes);
#pragma unroll 1
    for (int r = 0; r < kFilterSize; ++r, row_pixels += row_step) {
#pragma unroll(C::kTerms == 1 ? kFilterSize : 1)
      for (int s = 0; s < kFilterSize; ++s) {
        ptx::mbarrier_wait(ptx::shared_address(&shared.filter_full[at.filter.stage]), at.filter.parity);
        const std::uint64_t filter =
                                filter_descriptor(ptx::shared_address(shared.filter[at.filter.stage][m])),
                            pixels = row_pixels + ptx::descriptor_step(s * kGranuleBytes);
        if constexpr (C::kTerms == 1) {
          ptx::wgmma_fence();
          mma_tap(sums, filter, pixels, C::kPlaneBytes, c_block == 0 && r == 0 && s == 0);
          ptx::wgmma_commit_group();
          ptx::wgmma_wait_group<1>();
          release();
          if (feeds) fetch_tap(args, shared);
        }
        unreleased_tap = at.filter.stage;
        unreleased_x = r == kFilterSize - 1 && s == kFilterSize - 1 ? at.x.stage : -1;
        if constexpr (C::kTerms == 2) {
          mma_split_tap<C>(sums, filter, pixels);
          release();
          if (feeds) fetch_tap(args, shared);
        }
        at.filter.advance();
      }
    }
    at.x.advance();
  }
  if constexpr (C::kTerms == 1) {
    ptx::wgmma_wait_group<0>();
    release();
  }
}

/// Where the pixels of a consumer's share of a tile are in y.
template <class C>
__device__ __forceinline__ void locate_output(const Args& args, SharedStorage<C>& shared,
                                              const TilePlace& place, int consumer, int first_pixel) {
  const int thread = threadIdx.x % 128, pixel = first_pixel + thread;
  const int row = pixel / args.stage_columns(), column = pixel % args.stage_columns();
  const std::int64_t batch_row = place.first_row + row, image = batch_row / args.h, p = batch_row % args.h;
  const int q = place.first_column + column;
  const bool exists = row < args.rows && column < args.columns && q < args.q && p < args.p && image < args.n;
  ptx::named_barrier_sync(kConsumerBarrier + consumer, 128);  // the last tile's offsets have been read
  shared.y_offset[consumer][thread] = exists ? (image * args.k * args.p + p) * args.q + q : std::int64_t{-1};
  ptx::named_barrier_sync(kConsumerBarrier + consumer, 128);
}

/// Bias, Mish, Mish and stores, two neighbouring pixels at a time. What the L2 gets of a row is complete only
/// when the neighbouring lanes and tiles have stored theirs; it has the time, for these are the cases with
/// much arithmetic to an output, or few outputs.
template <class C>
__device__ __forceinline__ void store_tile(const Args& args, SharedStorage<C>& shared, Accumulator& sums,
                                           int k_first, const ChannelAffine (&affine)[2], int consumer) {
  const int lane = threadIdx.x % 32;
  const std::int64_t plane = std::int64_t{args.p} * args.q;
  const bool pairs = args.q % 2 == 0 && args.columns % 2 == 0;  // so both exist or neither, 8-byte aligned
  const bool live[2] = {k_first < args.k, k_first + 8 < args.k};
  float* const first_out = args.y + k_first * plane;
  constexpr int kGroup = 2;  // fragments that go through the activation together
#pragma unroll
  for (int first = 0; first < kBlockPixels / 8; first += kGroup) {
    float v[4 * kGroup];
#pragma unroll
    for (int i = 0; i < 4 * kGroup; ++i)
      v[i] = __fmaf_rn(sums[4 * first + i], affine[i / 2 % 2].scale, affine[i / 2 % 2].bias);
    mish_of_mish(v);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const longlong2 offsets = ptx::load_shared_longlong2(
          ptx::shared_address(&shared.y_offset[consumer][(first + j) * 8 + 2 * (lane % 4)]));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const pair = v + 4 * j + 2 * half;
        float* const out = first_out + 8 * half * plane;
        const bool first_live = live[half] && offsets.x >= 0, second_live = live[half] && offsets.y >= 0;
        if (first_live && pairs) ptx::store_global(out + offsets.x, make_float2(pair[0], pair[1]));
        if (first_live && !pairs) ptx::store_global(out + offsets.x, pair[0]);
        if (second_live && !pairs) ptx::store_global(out + offsets.y, pair[1]);
      }
    }
  }
}

template <class C>
__device__ __forceinline__ void consume(const Args& args, SharedStorage<C>& shared, int consumer, int warp) {
  const int m = consumer % C::kM, first_pixel = consumer / C::kM * kBlockPixels;
  ConsumerCursors<C> cursors;
  const bool feeds = consumer == 0 && threadIdx.x % 128 == 0;
  if (feeds) start_feed(args, shared);
  for (std::int64_t tile = blockIdx.x; tile < args.tiles(); tile += gridDim.x) {
    const TilePlace place(args, tile);
    const int k_first = (place.k_tile * C::kM + m) * kBlockK + 16 * warp + threadIdx.x % 32 / 4;
    locate_output(args, shared, place, consumer, first_pixel);
    Accumulator sums;
    mma_stage(sums, args, shared, cursors, feeds, m, first_pixel);
    const ChannelAffine affine[2] = {args.affine[k_first], args.affine[k_first + 8]};
    store_tile(args, shared, sums, k_first, affine, consumer);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1) kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SharedStorage<C>& shared = *reinterpret_cast<SharedStorage<C>*>(memory);
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);

  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&shared.x_full[i]), kWarpsPerGroup);
      ptx::mbarrier_init(ptx::shared_address(&shared.x_empty[i]), C::kConsumers * kWarpsPerGroup);
    }
    for (int i = 0; i < C::kTapStages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&shared.filter_full[i]), 1);
      ptx::mbarrier_init(ptx::shared_address(&shared.filter_empty[i]), C::kConsumers * kWarpsPerGroup);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (group == 0) {
    ptx::setmaxnreg_dec<C::kProducerRegisters>();
    produce(args, shared, warp);
  } else {
    ptx::setmaxnreg_inc<C::kConsumerRegisters>();
    consume(args, shared, group - 1, warp);
  }
}

}  // namespace convmish::hopper::streamed
