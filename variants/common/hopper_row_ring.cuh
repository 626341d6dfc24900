// The fused convolution for few input channels (c <= 64) and wide rows: filter resident, input rows in a
// ring.
//
// A cluster of two thread blocks walks down a run of output rows. Each block computes 64 of the cluster's 128
// output channels, so both need every input row: each converts half of the input channels to fp16 and copies
// the result to its peer, and a row of x is read once.
//
//   producer, 1 warpgroup    global fp32 -> registers -> fp16 -> ring slot, here and (bulk copy) in the peer
//   consumers, 4 warpgroups  tiles of 64 channels x 128 pixels in turn: wgmma over the 9 taps, bias, Mish,
//                            Mish, store. One multiplies while the three others are in their epilogue
//
// Who waits for whom:
//   stage_full[warp]  a producer warp waits for what it has sent for of a row
//   row_full[slot]    consumers wait; completed by the 4 producer warps and the bytes of the peer's copies
//   row_empty[slot]   producers wait; completed by every consumer warp of both blocks, for both write there
//   turn (named)      consumer i waits for consumer i - 1 to have issued nearly all its wgmma
//   carry_full[tile]  a tile's first sector waits for the last pixels of the tile before it
//
// y is written in whole 32-byte sectors, although a row starts at any multiple of its element: a tile's last,
// incomplete sector is carried to the next tile in memory order, which another warpgroup computes.
#pragma once

#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"

namespace convmish::hopper::row_ring {

inline constexpr int kClusterBlocks = 2;
inline constexpr int kClusterK = kClusterBlocks * kBlockK;
inline constexpr int kConsumers = 4;
inline constexpr int kWarpsPerGroup = 4;
inline constexpr int kThreads = 128 * (1 + kConsumers);
inline constexpr int kRowPixels = 256;                                // input pixels of a ring slot
inline constexpr int kStripColumns = kRowPixels - (kFilterSize - 1);  // outputs that a slot serves
inline constexpr int kTilesPerRow = kRowPixels / kBlockPixels;
inline constexpr int kRingRows = 4;                 // 3 in use, 1 being filled
inline constexpr int kHalfPixels = kRowPixels / 2;  // a producer brings rows in halves
inline constexpr int kPlaneBytes = kRowPixels * kGranuleBytes;
inline constexpr int kStageBytes = kPlaneChannels * kHalfPixels * sizeof(float);
inline constexpr int kPlanesPerBlock = kPlanes / kClusterBlocks;
static_assert(kPlanesPerBlock == kWarpsPerGroup, "one producer warp a plane");
// A producer warp needs 32 loads in flight and as many registers; consumers 64 for their sums.
inline constexpr int kProducerRegisters = 64, kConsumerRegisters = 104;
static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * 128 <= kThreads * 96,
              "setmaxnreg hands out what the launch allots: 65536 / 640 threads, rounded down to 8");

inline constexpr int kSector = 8;  // floats in the 32 bytes that the L2 writes as one
// The tile after the next four is the first whose carry is written by the warpgroup that read this one's.
inline constexpr int kCarries = kConsumers + 1;

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  const float* x;
  float* y;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to kClusterK
  std::uint8_t* raised;         // [image, strip][input row][plane]: the range guard's flags
  int n, c, h, w, k, p, q;
  int strips;                   // of kStripColumns output columns
  int k_clusters;               // clusters needed for all output channels
  int parts;                    // runs of rows that the batch is divided in
  std::int64_t channel_stride;  // of x

  CONVMISH_HD std::int64_t total_rows() const { return std::int64_t{n} * strips * p; }
  __device__ int row_id(int image_strip, int row) const { return image_strip * h + row; }
};

/// What the range guard's flags mean, for the second pass: a unit is an output row of a strip.
struct Units {
  Args args;

  CONVMISH_HD std::int64_t count() const { return args.total_rows(); }
  __device__ int flag_count() const { return kFilterSize * kPlanes; }  // of three input rows
  __device__ OutputUnit unit(std::int64_t i) const {
    const auto image_strip = static_cast<int>(i / args.p), row = static_cast<int>(i % args.p);
    const int first_column = image_strip % args.strips * kStripColumns;
    return {.first_row = std::int64_t{image_strip / args.strips} * args.h + row,
            .first_column = first_column,
            .rows = 1,
            .columns = min(kStripColumns, args.q - first_column),
            .flags = args.raised + std::int64_t{args.row_id(image_strip, row)} * kPlanes};
  }
  __device__ Granule granule(int flag) const {
    return {.first_row = flag / kPlanes,
            .rows = 1,
            .first_channel = flag % kPlanes * kPlaneChannels,
            .channels = kPlaneChannels};
  }
};

/// Consecutive output rows of one strip of one image.
struct Run {
  int image, strip, first_row, rows;

  __device__ int input_rows() const { return rows + kFilterSize - 1; }
};

/// The runs of one cluster: part `part` of `parts` of all rows, images outermost, rows innermost.
class Walk {
 public:
  __device__ Walk(const Args& args, int part)
      : at_(static_cast<int>(args.total_rows() * part / args.parts)),
        end_(static_cast<int>(args.total_rows() * (part + 1) / args.parts)) {}

  __device__ bool next(const Args& args, Run& run) {
    if (at_ >= end_) return false;
    const int image_strip = at_ / args.p;
    run.image = image_strip / args.strips;
    run.strip = image_strip % args.strips;
    run.first_row = at_ % args.p;
    run.rows = min(args.p - run.first_row, end_ - at_);
    at_ += run.rows;
    return true;
  }

 private:
  int at_, end_;  // the chooser of this kernel sees to it that rows can be counted so
};

// --- producer --------------------------------------------------------------------------------------------
//
// A producer warp brings one plane of every row, in two halves with different ways from global memory, so
// that both are under way all the time, 4 KB each: the first through registers, the second through `stage`.

inline constexpr int kHalfGranules = kHalfPixels / 32;  // of a lane

using Batch = float[kHalfGranules][kPlaneChannels];

/// Where a warp's second halves of rows arrive.
struct Stage {
  ptx::SharedAddress first, full;

  __device__ __forceinline__ ptx::SharedAddress at(int c, int pixel) const {
    return first + (c * kHalfPixels + pixel) * sizeof(float);
  }
};

/// A row of a plane of x.
struct PlaneRow {
  const float* first;  // pixel of the strip, in the plane's first channel
  int column;          // of that pixel
  int channels;        // that exist, of 8; the others are zero
  bool whole;          // all channels and pixels exist
  bool bulk;           // and bulk copies may read them

  __device__ __forceinline__ void load_first_half(const Args& args, int lane, Batch& batch) const {
    constexpr std::uint64_t kPolicy = ptx::kEvictFirst;
    const float* source = first + lane;
    asm volatile("" : "+l"(source));
    if (whole) {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += args.channel_stride)
#pragma unroll
        for (int i = 0; i < kHalfGranules; ++i) batch[i][c] = ptx::load_global_once(source + 32 * i, kPolicy);
    } else {
      const int pixels = args.w - column - lane;
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += args.channel_stride)
#pragma unroll
        for (int i = 0; i < kHalfGranules; ++i)
          batch[i][c] =
              c < channels && 32 * i < pixels ? ptx::load_global_once(source + 32 * i, kPolicy) : 0.0f;
    }
  }

  __device__ __forceinline__ void copy_second_half(const Args& args, int lane, const Stage& stage) const {
    if (lane == 0) ptx::mbarrier_arrive_expect_tx(stage.full, bulk ? kStageBytes : 0);
    if (bulk) {
      __syncwarp();
      if (lane < kPlaneChannels)  // a channel each
        ptx::bulk_copy_from_global(stage.at(lane, 0), first + kHalfPixels + lane * args.channel_stride,
                                   kHalfPixels * sizeof(float), stage.full, ptx::kEvictFirst);
    } else {
      const float* source = first + kHalfPixels + lane;
      const int pixels = args.w - column - kHalfPixels - lane;
#pragma unroll 1
      for (int c = 0; c < kPlaneChannels; ++c, source += args.channel_stride)
#pragma unroll
        for (int i = 0; i < kHalfGranules; ++i)
          ptx::async_copy_or_zero(stage.at(c, 32 * i + lane), source + 32 * i,
                                  c < channels && 32 * i < pixels);
    }
  }
};

/// What a RangeGuard says of a lane's pixels of a row.
__device__ __forceinline__ bool out_of_range(const Batch& first_half, const Stage& stage, int lane) {
  RangeGuard guard;
#pragma unroll
  for (int i = 0; i < kHalfGranules; ++i)
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c) guard.see(first_half[i][c]);
#pragma unroll 1
  for (int c = 0; c < kPlaneChannels; ++c)
#pragma unroll
    for (int i = 0; i < kHalfGranules; ++i) guard.see(ptx::load_shared_float(stage.at(c, 32 * i + lane)));
  return guard.raised();
}

/// Steps through the rows of a walk. In shared memory, to keep it out of the registers: one lane steps, all
/// read.
struct PlaneReader {
  Walk walk;
  PlaneRow row;
  int row_id;     // for the flags
  int rows_left;  // of the run; 0: there are no more

  __device__ void open(const Args& args, int part, int plane) {
    walk = Walk(args, part);
    open_run(args, plane);
  }
  __device__ void advance(const Args& args, int plane) {
    row.first += args.w;
    ++row_id;
    if (--rows_left == 0) open_run(args, plane);
  }

 private:
  __device__ void open_run(const Args& args, int plane) {
    Run run;
    rows_left = 0;
    if (!walk.next(args, run)) return;
    rows_left = run.input_rows();
    row_id = args.row_id(run.image * args.strips + run.strip, run.first_row);
    row.column = run.strip * kStripColumns;
    row.first = args.x + (std::int64_t{run.image} * args.c + plane * kPlaneChannels) * args.channel_stride +
                std::int64_t{run.first_row} * args.w + row.column;
    row.channels = args.c - plane * kPlaneChannels;
    row.whole = row.channels >= kPlaneChannels && row.column + kRowPixels <= args.w;
    row.bulk = row.whole && args.w % 4 == 0 &&
               reinterpret_cast<std::uintptr_t>(row.first) % ptx::kBulkCopyAlignment == 0;
  }
};

struct SharedStorage {
  alignas(1024) __half filter[kTaps][kBlockK][kBlockC];
  // Tile 1 with tap s reads 2 pixels past a plane: the next plane's, or the stage's. Those are columns
  // of the product that no output needs.
  alignas(128) __half ring[kRingRows][kPlanes][kRowPixels][kPlaneChannels];
  alignas(128) float stage[kWarpsPerGroup][kPlaneChannels][kHalfPixels];  // second halves of rows of x
  float carry[kCarries][kWarpsPerGroup][16][kSector];
  PlaneReader reader[kWarpsPerGroup];
  std::uint64_t row_full[kRingRows];
  std::uint64_t row_empty[kRingRows];
  std::uint64_t stage_full[kWarpsPerGroup];
  std::uint64_t carry_full[kCarries][kWarpsPerGroup];
};
static_assert(sizeof(SharedStorage) <= 232448, "232448 B: sm_90 opt-in limit");
static_assert(sizeof(SharedStorage::ring) / kRingRows == kPlanes * kPlaneBytes);

/// Fills the ring: each warp one plane of 8 channels of every row.
__device__ __forceinline__ void produce_rows(const Args& args, SharedStorage& shared, int part, int rank,
                                             int warp) {
  const int lane = threadIdx.x % 32;
  const int plane = rank * kPlanesPerBlock + warp;
  const Stage stage{ptx::shared_address(shared.stage[warp]), ptx::shared_address(&shared.stage_full[warp])};

  PlaneReader& reader = shared.reader[warp];
  if (lane == 0) reader.open(args, part, plane);
  __syncwarp();

  Batch batch;
  const auto fetch = [&] {
    const PlaneRow row = reader.row;
    row.load_first_half(args, lane, batch);
    row.copy_second_half(args, lane, stage);
  };
  const auto more = [&] { return __any_sync(~0u, reader.rows_left > 0); };
  if (more()) fetch();
  for (unsigned row = 0; more(); ++row) {
    const unsigned slot = row % kRingRows;
    const ptx::SharedAddress slot_plane = ptx::shared_address(shared.ring[slot][plane]);
    GranuleGuard guard;
    const auto put = [&](int i, const float(&values)[kPlaneChannels]) {
      uint4 granule[1];
      convert_granule(values, granule);
      guard.see(granule[0]);
      ptx::store_shared(slot_plane + (32 * i + lane) * kGranuleBytes, granule[0]);
    };

    // Both blocks' consumers must have left the slot, for the peer's copy of it is written as well.
    ptx::mbarrier_wait(ptx::shared_address(&shared.row_empty[slot]), ~(row / kRingRows) & 1);
#pragma unroll
    for (int i = 0; i < kHalfGranules; ++i) put(i, batch[i]);
    ptx::async_copy_wait_all();
    ptx::mbarrier_wait(stage.full, row & 1);
#pragma unroll
    for (int i = 0; i < kHalfGranules; ++i) {
      float values[kPlaneChannels];
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c) values[c] = ptx::load_shared_float(stage.at(c, 32 * i + lane));
      put(kHalfGranules + i, values);
    }
    bool raised = false;
    if (__any_sync(~0u, guard.suspects())) raised = __any_sync(~0u, out_of_range(batch, stage, lane));
    ptx::fence_proxy_async();  // wgmma and the bulk copy read what was just written
    __syncwarp();              // every lane has written to the slot, and read the stage
    if (lane == 0) {
      const ptx::SharedAddress full = ptx::shared_address(&shared.row_full[slot]);
      if (warp == 0)
        ptx::mbarrier_arrive_expect_tx(full, kPlanesPerBlock * kPlaneBytes);  // what the peer copies to here
      else
        ptx::mbarrier_arrive(full);
      ptx::bulk_copy_to_cluster(ptx::map_to_rank(slot_plane, rank ^ 1), slot_plane, kPlaneBytes,
                                ptx::map_to_rank(full, rank ^ 1));
      args.raised[std::int64_t{reader.row_id} * kPlanes + plane] = raised;
      reader.advance(args, plane);
    }
    __syncwarp();
    if (more()) fetch();
  }
}

// --- consumers -------------------------------------------------------------------------------------------

/// Gives ring rows back to the producers of both blocks. Rows are counted from the start of the current run.
class RowRelease {
 public:
  __device__ RowRelease(SharedStorage& shared, int rank)
      : empty_(ptx::shared_address(shared.row_empty)),
        peer_empty_(ptx::map_to_rank(empty_, rank ^ 1)),
        full_(ptx::shared_address(shared.row_full)) {}

  __device__ void open_run() { released_ = seen_ = 0; }
  __device__ void close_run(int rows) { base_ += rows; }

  /// Waits for row `row` of the run and returns its slot.
  __device__ __forceinline__ unsigned wait(int row) {
    const unsigned at = base_ + row;
    ptx::mbarrier_wait(full_ + at % kRingRows * 8, at / kRingRows & 1);
    seen_ = max(seen_, row + 1);
    return at % kRingRows;
  }

  /// Rows before `end` are not needed any more. A row that this warp never read is waited for first: to
  /// arrive for a phase of row_empty whose row has not come would complete the phase before.
  __device__ __forceinline__ void release_until(int end) {
    for (; released_ < end; ++released_) {
      const unsigned slot = released_ < seen_ ? (base_ + released_) % kRingRows : wait(released_);
      if (threadIdx.x % 32 == 0) {
        ptx::mbarrier_arrive(empty_ + slot * 8);
        ptx::mbarrier_arrive_cluster(peer_empty_ + slot * 8);
      }
    }
  }

 private:
  ptx::SharedAddress empty_, peer_empty_, full_;
  unsigned base_ = 0;  // rows of earlier runs
  int released_ = 0, seen_ = 0;
};

inline constexpr int kTurnBarrier = 1;  // named barriers 1 ... kConsumers; 0 is __syncthreads

__device__ __forceinline__ void wait_for_turn(int consumer) {
  ptx::named_barrier_sync(kTurnBarrier + consumer, 2 * 128);
}
__device__ __forceinline__ void pass_turn(int consumer) {
  ptx::named_barrier_arrive(kTurnBarrier + (consumer + 1) % kConsumers, 2 * 128);
}

/// sums = the tile's 9 taps. Passes the turn before the last tap, so that the tensor cores never run dry.
__device__ __forceinline__ void mma_stage(Accumulator& sums, SharedStorage& shared, RowRelease& rows, int row,
                                          int first_pixel, int consumer) {
  wait_for_turn(consumer);
#pragma unroll
  for (int r = 0; r < kFilterSize; ++r) {
    const unsigned slot = rows.wait(row + r);
    ptx::wgmma_fence();
    const std::uint64_t pixels =
        pixel_descriptor(ptx::shared_address(shared.ring[slot]) + first_pixel * kGranuleBytes, kPlaneBytes);
    const std::uint64_t filter = filter_descriptor(ptx::shared_address(shared.filter[r * kFilterSize]));
#pragma unroll
    for (int s = 0; s < kFilterSize; ++s) {
      if (r == kFilterSize - 1 && s == kFilterSize - 1) pass_turn(consumer);
      mma_tap(sums, filter + ptx::descriptor_step(s * kTapBytes),
              pixels + ptx::descriptor_step(s * kGranuleBytes), kPlaneBytes, r == 0 && s == 0);
    }
    ptx::wgmma_commit_group();
  }
  ptx::wgmma_wait_group<0>();
}

/// Where a tile lies in y.
struct Tile {
  std::int64_t at;    // of its first pixel, in the thread block's first output channel
  int width;          // pixels that are outputs, of 128
  int number;         // of this thread block, from 0
  bool opens_chain;   // no tile before it carries to it
  bool closes_chain;  // it carries to none after it
};

/// What a lane needs in every epilogue.
struct EpilogueLane {
  float* y;
  std::int64_t channel_at;  // floats from the thread block's first output channel to its own
  std::int64_t half_step;   // and from that to the channel 8 farther
  int channel;              // of this lane's sums, in the thread block; and channel + 8
  int live_channels;        // of the thread block's 64
  ChannelAffine affine[2];
  std::uint64_t policy;
  int consumer, warp, lane;
};

/// Bias, Mish, Mish, and the way to y.
///
/// A lane's two neighbouring pixels (elements e = 0, 1 of fragment j) lie in a sector that starts `head`
/// pixels after a fragment does. Sector s of a tile is its pixels 8 (s - 1) + head ... + 7: a lane's elements
/// that come before `head` in their fragment ("early") belong to sector s = j, the others to s = j + 1. So
/// sectors 1 ... 15 are whole, and sectors 0 and 16 are shared with the tiles before and after it. kEven:
/// rows have an even number of outputs, so that a lane's two elements are never in different sectors.
template <bool kEven>
class Epilogue {
 public:
  static constexpr int kTileSectors = kBlockPixels / kSector;  // 16; with the skew a tile touches one more
  /// From this width on, sectors 1 ... 15 are whole at any alignment.
  static constexpr int kChainedWidth = (kTileSectors - 1) * kSector + (kEven ? 6 : 7);

  __device__ __forceinline__ Epilogue(SharedStorage& shared, const EpilogueLane& lane, const Tile& tile)
      : shared_(shared), me_(lane), tile_(tile), pixel_(2 * (lane.lane % 4)) {}

  __device__ __forceinline__ void run(const Accumulator& sums) {
    if (tile_.width >= kChainedWidth)
      store_sectors(sums);
    else
      store_fragments(sums);
  }

 private:
  /// Where sector 0 starts: `shift` floats after the tile.
  __device__ __forceinline__ void set_out(int shift) {
    out_[0] = me_.y + (tile_.at + me_.channel_at) + shift + place_[0];
    out_[1] = out_[0] + me_.half_step;
    asm volatile("" : "+l"(out_[0]), "+l"(out_[1]));  // else 64-bit addresses are rebuilt at every use
  }

  __device__ __forceinline__ float pre_activation(float sum, int t) const {
    return __fmaf_rn(sum, me_.affine[t / 2].scale, me_.affine[t / 2].bias);
  }

  /// A narrow tile: every lane stores its own pixels, sectors in parts. Such a tile stands outside the chain.
  __device__ __forceinline__ void store_fragments(const Accumulator& sums) {
    pass_carry();  // nothing, but the barrier's phases count tiles
    place_[0] = pixel_, place_[1] = pixel_ + 1;
    set_out(0);
#pragma unroll
    for (int j = 0; j < kTileSectors; ++j) {
      if (j * kSector >= tile_.width) continue;
      float v[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = pre_activation(sums[4 * j + t], t);
      mish_of_mish(v);
      const int pixel = j * kSector + pixel_;
      store_pairs(v, j, pixel < tile_.width, pixel + 1 < tile_.width);
    }
  }

  __device__ __forceinline__ void store_sectors(const Accumulator& sums) {
    head_ = -static_cast<int>(tile_.at + me_.channel_at) & (kSector - 1);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      early_[e] = pixel_ + (kEven ? 0 : e) < head_;
      place_[e] = kEven && e == 1 ? place_[0] + 1 : pixel_ + e - head_ & kSector - 1;
    }
    set_out(head_ - kSector);

    // Sectors 0 and 16 first, to pass the carry on early: a lane has a share in only one of the two.
    float edge[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) edge[t] = pre_activation(early_[t % 2] ? sums[t] : sums[4 * 15 + t], t);
    mish_of_mish(edge);
    leave_tail(edge);
    pass_carry();
    store_whole_sectors(sums);
    store_head(edge);
  }

  /// Sectors 1 ... 15: a lane stores two pixels, four lanes a sector, so that an instruction writes whole
  /// sectors of 8 channels.
  __device__ __forceinline__ void store_whole_sectors(const Accumulator& sums) {
    constexpr int kGroup = 3;  // sectors that go through the activation together
    static_assert((kTileSectors - 1) % kGroup == 0);
#pragma unroll
    for (int first = 1; first < kTileSectors; first += kGroup) {
      float v[4 * kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const int late = 4 * (first + i - 1) + t;
          v[4 * i + t] = pre_activation(early_[t % 2] ? sums[late + 4] : sums[late], t);
        }
      mish_of_mish(v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) store_pairs(v + 4 * i, first + i, true, true);
      __syncwarp();
    }
  }

  /// Sector 16: its pixels wait in `carry` for the next tile, or go to y where they make it whole or no tile
  /// follows.
  __device__ __forceinline__ void leave_tail(const float (&edge)[4]) {
    const bool live[2] = {!early_[0] && kBlockPixels - kSector + pixel_ < tile_.width,
                          !early_[1] && kBlockPixels - kSector + pixel_ + 1 < tile_.width};
    if (tile_.closes_chain || kTileSectors * kSector + head_ <= tile_.width) {
      store_pairs(edge, kTileSectors, live[0], live[1]);
      return;
    }
#pragma unroll
    for (int t = 0; t < 4; ++t)
      if (live[t % 2]) *carry_slot(tile_.number, t) = edge[t];
  }

  __device__ __forceinline__ void pass_carry() {
    ptx::mbarrier_arrive(ptx::shared_address(&shared_.carry_full[tile_.number % kCarries][me_.warp]));
  }

  /// Sector 0: this tile's early elements, and from the tile before it what it left.
  __device__ __forceinline__ void store_head(float (&edge)[4]) {
    if (tile_.opens_chain) {
      store_pairs(edge, 0, early_[0], early_[1]);
      return;
    }
    const int before = tile_.number - 1;
    ptx::mbarrier_wait(ptx::shared_address(&shared_.carry_full[before % kCarries][me_.warp]),
                       before / kCarries & 1);
    if (head_ == 0) return;  // the tiles meet between sectors
#pragma unroll
    for (int t = 0; t < 4; ++t)
      if (!early_[t % 2]) edge[t] = *carry_slot(before, t);
    store_pairs(edge, 0, true, true);
  }

  /// A lane's elements of both its channels.
  __device__ __forceinline__ void store_pairs(const float* v, int sector, bool first, bool second) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool live = me_.channel + 8 * half < me_.live_channels;
      float* const out = out_[half] + sector * kSector;
      if (kEven) {  // both or neither
        if (live && first) ptx::store_global(out, make_float2(v[2 * half], v[2 * half + 1]), me_.policy);
      } else {
        if (live && first) ptx::store_global(out, v[2 * half], me_.policy);
        if (live && second) ptx::store_global(out + place_[1] - place_[0], v[2 * half + 1], me_.policy);
      }
    }
  }

  __device__ __forceinline__ float* carry_slot(int number, int t) {
    return &shared_.carry[number % kCarries][me_.warp][me_.lane / 4 + t / 2 * 8][place_[t % 2]];
  }

  SharedStorage& shared_;
  const EpilogueLane& me_;
  const Tile& tile_;
  int pixel_;      // this lane's first in a fragment
  float* out_[2];  // its place in sector 0, in its two channels
  int head_, place_[2];
  bool early_[2];
};

template <bool kEven>
__device__ __forceinline__ void consume_rows(const Args& args, SharedStorage& shared, int part, int rank,
                                             int first_k, int consumer, int warp) {
  EpilogueLane me;
  me.lane = threadIdx.x % 32;
  me.warp = warp;
  me.consumer = consumer;
  me.channel = 16 * warp + me.lane / 4;
  me.live_channels = args.k - first_k;
  const std::int64_t plane = std::int64_t{args.p} * args.q;
  me.y = args.y;
  me.channel_at = me.channel * plane;
  me.half_step = 8 * plane;
  me.affine[0] = args.affine[first_k + me.channel];
  me.affine[1] = args.affine[first_k + me.channel + 8];
  me.policy = ptx::kEvictLast;
  if (consumer == kConsumers - 1) pass_turn(consumer);  // the first turn is consumer 0's

  RowRelease rows(shared, rank);
  Walk walk(args, part);
  int earlier_tiles = 0;
  for (Run run; walk.next(args, run);) {
    rows.open_run();
    const int columns = min(kStripColumns, args.q - run.strip * kStripColumns);
    const int row_shift = columns > kBlockPixels ? 1 : 0, tiles_per_row = 1 << row_shift;
    static_assert(kTilesPerRow == 2);
    const int last_width = columns - (tiles_per_row - 1) * kBlockPixels;
    const bool chained = last_width >= Epilogue<kEven>::kChainedWidth;
    const bool rows_follow = chained && args.strips == 1;  // one row's end is the next row's start in y
    const int tiles = run.rows << row_shift;
#pragma unroll 1
    for (int t = (consumer + kConsumers - earlier_tiles % kConsumers) % kConsumers; t < tiles;
         t += kConsumers) {
      const int row = t >> row_shift, column_tile = t & (tiles_per_row - 1);
      rows.release_until(row);
      Accumulator sums;
      mma_stage(sums, shared, rows, row, column_tile * kBlockPixels, consumer);
      const int next = t + kConsumers;
      rows.release_until(next < tiles ? min(next >> row_shift, row + kFilterSize) : row + kFilterSize);

      const bool first_of_row = column_tile == 0, last_of_row = column_tile == tiles_per_row - 1;
      Tile tile;
      tile.at = (std::int64_t{run.image} * args.k + first_k) * plane +
                std::int64_t{run.first_row + row} * args.q + run.strip * kStripColumns +
                column_tile * kBlockPixels;
      tile.width = last_of_row ? last_width : kBlockPixels;
      tile.number = earlier_tiles + t;
      tile.opens_chain = first_of_row ? !rows_follow || t == 0 : !chained;
      tile.closes_chain = last_of_row ? !rows_follow || t == tiles - 1 : !chained;
      Epilogue<kEven>(shared, me, tile).run(sums);
    }
    rows.release_until(run.input_rows());
    rows.close_run(run.input_rows());
    earlier_tiles += tiles;
  }
}

__device__ __forceinline__ void init_barriers(SharedStorage& shared) {
  for (int i = 0; i < kRingRows; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&shared.row_full[i]), kWarpsPerGroup);
    ptx::mbarrier_init(ptx::shared_address(&shared.row_empty[i]),
                       kClusterBlocks * kConsumers * kWarpsPerGroup);
  }
  for (int warp = 0; warp < kWarpsPerGroup; ++warp)
    ptx::mbarrier_init(ptx::shared_address(&shared.stage_full[warp]), 1);
  for (int i = 0; i < kCarries; ++i)
    for (int warp = 0; warp < kWarpsPerGroup; ++warp)
      ptx::mbarrier_init(ptx::shared_address(&shared.carry_full[i][warp]), 32);
  ptx::fence_mbarrier_init();
}

__device__ __forceinline__ void load_filter(const Args& args, SharedStorage& shared, int k_block) {
  constexpr int kVectors = sizeof(shared.filter) / sizeof(uint4);
  const uint4* const source = args.filter + std::int64_t{k_block} * kVectors;
  uint4* const destination = reinterpret_cast<uint4*>(shared.filter);
  for (int i = threadIdx.x; i < kVectors; i += kThreads) destination[i] = source[i];
  ptx::fence_proxy_async();
}

template <bool kEven>
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(memory);
  const int rank = blockIdx.x % kClusterBlocks, cluster = blockIdx.x / kClusterBlocks;
  const int part = cluster / args.k_clusters, k_cluster = cluster % args.k_clusters;
  const int k_block = k_cluster * kClusterBlocks + rank;
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);

  if (threadIdx.x == 0) init_barriers(shared);
  load_filter(args, shared, k_block);
  __syncthreads();
  ptx::cluster_sync();  // the peer's barriers exist before anything is sent to them

  if (group == 0) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    produce_rows(args, shared, part, rank, warp);
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    consume_rows<kEven>(args, shared, part, rank, k_block * kBlockK, group - 1, warp);
  }
  __syncwarp();
  ptx::cluster_sync();  // the peer may still copy to, or arrive at, this block's shared memory
}

}  // namespace convmish::hopper::row_ring
