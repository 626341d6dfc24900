// The fused convolution for few input channels (c <= 64) and wide, even rows: filter resident, input rows in
// a ring.
//
// A cluster of two thread blocks walks down a run of output rows. Each block computes 64 of the cluster's 128
// output channels, so both need every input row: each converts half of the input channels to fp16 and copies
// the result to its peer, and a row of x is read once. Rows wider than a ring slot are cut in strips.
//
//   producer, 1 warpgroup    global fp32 -> (tensor copy) stage -> registers -> fp16 -> ring slot, here and
//                            (bulk copy) in the peer
//   consumers, 4 warpgroups  tiles of 64 channels x 128 pixels in turn: wgmma over the 9 taps, bias, Mish,
//                            Mish, store. One multiplies while the three others are in their epilogue
//
// Who waits for whom:
//   filter_full       consumers wait, once
//   stage_full[warp]  a producer warp waits for the piece of a row that it has sent for
//   row_full[slot]    consumers wait; completed by the 4 producer warps and the bytes of the peer's copies
//   row_empty[slot]   producers wait; completed by every consumer warp of both blocks, for both write there
//   turn (named)      consumer i waits for consumer i - 1 to have issued nearly all its wgmma
//
// y is written in whole 32-byte sectors, although a row starts at any multiple of its element. Only a tile's
// first and last one are written in parts; the L2 joins them with those of the tiles before and after it.
#pragma once

#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"
#include "variants/common/hopper_ring.cuh"
#include "variants/common/tensor_map.hpp"

namespace convmish::hopper::row_ring {

using namespace ring;

inline constexpr int kTilesPerRow = 2;
inline constexpr int kStripColumns = kTilesPerRow * kBlockPixels;  // outputs that a ring slot serves
inline constexpr int kLead = 2;  // pixels that a slot may hold before a row's own: see Args::map_x
inline constexpr int kTailPixels = kFilterSize - 1 + kLead;
inline constexpr int kRowPixels = kStripColumns + kTailPixels;  // input pixels of a slot
inline constexpr int kRingRows = 4;                             // 3 in use, 1 being filled
inline constexpr int kPlaneBytes = kRowPixels * kGranuleBytes;
inline constexpr int kPieces =
    kStripColumns / kPiecePixels;  // of a row; with the last of them comes the tail
inline constexpr int kTailBytes = kPlaneChannels * kTailPixels * sizeof(float);

inline constexpr int kSector = 8;  // floats in the 32 bytes that the L2 writes as one

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
  bool mapped;                  // a tensor copy can read x
  int paired;                   // 1: as two rows in one; else 0
  CUtensorMap piece_map;        // of x, if so: boxes of kPiecePixels of kPlaneChannels
  CUtensorMap tail_map;         // of kTailPixels

  CONVMISH_HD std::int64_t total_rows() const { return std::int64_t{n} * strips * p; }
  __device__ int row_id(int image_strip, int row) const { return image_strip * h + row; }
  /// Whether any strip has outputs that need a slot's last pixels.
  __device__ bool has_tail() const { return w > kStripColumns; }

  /// Pixels of a row's slot before its own.
  __device__ int lead(int row) const { return (row & paired) * kLead; }

  /// To be called when x is known. Tensor copies begin at multiples of 16 bytes, as do a map's rows. Where
  /// only every second row of x does, the map's are two of x, and copies of those between begin kLead pixels
  /// before them.
  void map_x() {
    const int rows = w % 4 == 0 ? 1 : 2;
    mapped = h % rows == 0 && can_map(x, rows * std::int64_t{w});
    paired = mapped ? rows - 1 : 0;
    if (!mapped) return;
    piece_map = tensor_map(x, {rows * w, h / rows, c, n}, {kPiecePixels, 1, kPlaneChannels, 1});
    tail_map = tensor_map(x, {rows * w, h / rows, c, n}, {kTailPixels, 1, kPlaneChannels, 1});
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
// A producer warp brings one plane of every row, piece by piece. While it converts one, the next are on their
// way to its stages.

/// Steps through the input rows of a walk.
struct InputRow {
  Walk walk;
  int image, strip, row;
  int left;  // rows of the run, this one included; 0: there are no more

  __device__ InputRow(const Args& args, int part) : walk(args, part) { open_run(args); }

  __device__ int id(const Args& args) const { return args.row_id(image * args.strips + strip, row); }
  __device__ __forceinline__ void step(const Args& args) {
    ++row;
    if (--left == 0) open_run(args);
  }

 private:
  __device__ void open_run(const Args& args) {
    Run run;
    left = 0;
    if (!walk.next(args, run)) return;
    image = run.image, strip = run.strip, row = run.first_row;
    left = run.input_rows();
  }
};

/// Where a piece of a plane arrives, and the tail with the last one.
struct Stage {
  ptx::SharedAddress first, full;
  ptx::SharedAddress tail;  // all of a warp's stages have the same: a row has one

  __device__ __forceinline__ ptx::SharedAddress at(int c, int pixel) const {
    return first + (c * kPiecePixels + pixel) * sizeof(float);
  }

  /// Sends for a piece. By a whole warp.
  __device__ __forceinline__ void fetch(const Args& args, const InputRow& from, int plane, int piece,
                                        int lane) const {
    const bool with_tail = piece == kPieces - 1 && args.has_tail();
    const int column = from.strip * kStripColumns + piece * kPiecePixels;
    if (args.mapped) {
      if (lane > 0) return;
      const int row = from.row >> args.paired;
      const int first_column = column + (from.row & args.paired) * (args.w - kLead);
      const auto copy = [&](ptx::SharedAddress to, const CUtensorMap& map, int at) {
        ptx::tensor_copy_from_global(to, map, {first_column + at, row, plane * kPlaneChannels, from.image},
                                     full, ptx::kEvictFirst);
      };
      ptx::mbarrier_arrive_expect_tx(full, with_tail ? kStageBytes + kTailBytes : kStageBytes);
      copy(first, args.piece_map, 0);
      if (with_tail) copy(tail, args.tail_map, kPiecePixels);
    } else {
      fetch_by_lane(args, from, plane, column, with_tail, lane);
      ptx::async_copy_arrive(full);
    }
  }

  /// Of `full`: the lane that sends for all, or all lanes.
  __device__ static int arrivals(const Args& args) { return args.mapped ? 1 : 32; }

 private:
  /// Each lane two pixels at a time: both exist or neither, for rows are even.
  __device__ __forceinline__ void fetch_by_lane(const Args& args, const InputRow& from, int plane, int column,
                                                bool with_tail, int lane) const {
    constexpr int kPixels = 2;
    const int channels = args.c - plane * kPlaneChannels;
    const float* source = args.x +
                          (std::int64_t{from.image} * args.c + plane * kPlaneChannels) * args.channel_stride +
                          std::int64_t{from.row} * args.w + column;
    if (constexpr int kLanes = kTailPixels / kPixels; with_tail && lane < kPlaneChannels * kLanes) {
      const int c = lane / kLanes, pixel = kPiecePixels + lane % kLanes * kPixels;
      ptx::async_copy_or_zero<kPixels>(tail + kPixels * lane * sizeof(float),
                                       source + c * args.channel_stride + pixel,
                                       c < channels && column + pixel < args.w);
    }
    const int pixel = kPixels * lane;
    static_assert(kPiecePixels == 32 * kPixels);
    source += pixel;
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c, source += args.channel_stride)
      ptx::async_copy_or_zero<kPixels>(at(c, pixel), source, c < channels && column + pixel < args.w);
  }
};

struct SharedStorage {
  alignas(1024) __half filter[kTaps][kBlockK][kBlockC];
  // Where no strip has a tail, that part of a slot is never written: what comes of it are columns of the
  // product that no output needs.
  alignas(128) __half ring[kRingRows][kPlanes][kRowPixels][kPlaneChannels];
  alignas(128) float stage[kWarpsPerGroup][kStages][kPlaneChannels][kPiecePixels];
  alignas(128) float tail[kWarpsPerGroup][kPlaneChannels][kTailPixels];
  std::uint64_t filter_full;
  std::uint64_t row_full[kRingRows];
  std::uint64_t row_empty[kRingRows];
  std::uint64_t stage_full[kWarpsPerGroup][kStages];
};
static_assert(sizeof(SharedStorage) <= 232448, "232448 B: sm_90 opt-in limit");
static_assert(sizeof(SharedStorage::ring) / kRingRows == kPlanes * kPlaneBytes);

/// Takes a tail from where it has arrived to the ring, a lane one channel of one pixel. Returns whether
/// rounding has cost this lane's value more than its share.
__device__ __forceinline__ bool move_tail(ptx::SharedAddress from, ptx::SharedAddress to, int lane) {
  static_assert(kPlaneChannels * kTailPixels == 32);
  const int pixel = lane / kPlaneChannels, c = lane % kPlaneChannels;
  const float value = ptx::load_shared_float(from + (c * kTailPixels + pixel) * sizeof(float));
  ptx::store_shared(to + lane * sizeof(__half), __half_as_ushort(__float2half_rn(scale_x(value))));
  return split_loses_bits<1>(value * kXScale);
}

/// Fills the ring: each warp one plane of 8 channels of every row.
__device__ __forceinline__ void produce_rows(const Args& args, SharedStorage& shared, int part, int rank,
                                             int warp) {
  const int lane = threadIdx.x % 32;
  const int plane = rank * kPlanesPerBlock + warp;
  const ptx::SharedAddress first_stage = ptx::shared_address(shared.stage[warp]),
                           first_full = ptx::shared_address(shared.stage_full[warp]),
                           tail_stage = ptx::shared_address(shared.tail[warp]);
  const auto stage_at = [=](unsigned i) {
    return Stage{first_stage + i * kStageBytes, first_full + i * 8, tail_stage};
  };

  InputRow ahead(args, part);  // whose pieces are sent for
  for (int i = 0; i < kStages && ahead.left > 0; ++i) stage_at(i).fetch(args, ahead, plane, i, lane);
  static_assert(kStages == kPieces - 1, "a stage is filled anew with the piece before, of the next row");

  unsigned stage_number = 0, stage_phase = 0;
  for (unsigned row = 0; ahead.left > 0; ++row) {
    const unsigned slot = row % kRingRows;
    const ptx::SharedAddress slot_plane = ptx::shared_address(shared.ring[slot][plane]);
    const int row_id = ahead.id(args);
    Piece pieces[2];
    Stage stages[2];
    const auto load = [&](int i) {
      const Stage stage = stages[i % 2] = stage_at(stage_number);
      ptx::mbarrier_wait(stage.full, stage_phase);
      pieces[i % 2].load(stage.first, lane);
      if (++stage_number == kStages) stage_number = 0, stage_phase ^= 1;
    };
    load(0);
    // Both blocks' consumers must have left the slot, for the peer's copy of it is written as well.
    ptx::mbarrier_wait(ptx::shared_address(&shared.row_empty[slot]), ~(row / kRingRows) & 1);
    bool raised = false;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (i + 1 < kPieces) load(i + 1);  // takes its time, meanwhile
      Piece& piece = pieces[i % 2];
      const bool suspects = piece.convert();
      if (ahead.left > 0) stages[i % 2].fetch(args, ahead, plane, (i + kStages) % kPieces, lane);
      if (i == 0) ahead.step(args);
      piece.store(slot_plane + i * kPiecePixels * kGranuleBytes, lane);
      if (suspects) raised |= piece.lost_bits();
    }
    if (args.has_tail())  // it has come with the last piece
      raised |= move_tail(tail_stage, slot_plane + kStripColumns * kGranuleBytes, lane);
    raised = __any_sync(~0u, raised);
    ptx::fence_proxy_async();  // wgmma and the bulk copy read what was just written
    __syncwarp();              // every lane has written to the slot
    if (lane == 0) {
      const ptx::SharedAddress full = ptx::shared_address(&shared.row_full[slot]);
      arrive_full(full, warp, kPlaneBytes);
      ptx::bulk_copy_to_cluster(ptx::map_to_rank(slot_plane, rank ^ 1), slot_plane, kPlaneBytes,
                                ptx::map_to_rank(full, rank ^ 1));
      args.raised[std::int64_t{row_id} * kPlanes + plane] = raised;
    }
    __syncwarp();
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

/// sums = the tile's 9 taps. Passes the turn before the last tap, so that the tensor cores never run dry.
__device__ __forceinline__ void mma_stage(const Args& args, Accumulator& sums, SharedStorage& shared,
                                          RowRelease& rows, const Run& run, int row, int first_pixel,
                                          int consumer) {
  wait_for_turn(consumer);
#pragma unroll
  for (int r = 0; r < kFilterSize; ++r) {
    const unsigned slot = rows.wait(row + r);
    const int first = args.lead(run.first_row + row + r) + first_pixel;
    const std::uint64_t pixels =
        pixel_descriptor(ptx::shared_address(shared.ring[slot]) + first * kGranuleBytes, kPlaneBytes);
    mma_filter_row(sums, shared.filter, pixels, kPlaneBytes, r, consumer);
  }
  ptx::wgmma_wait_group<0>();
}

/// Where a tile lies in y.
struct Tile {
  std::int64_t at;  // of its first pixel, in the thread block's first output channel
  int width;        // pixels that are outputs, of 128
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
  int lane;
};

/// Bias, Mish, Mish, and the way to y.
///
/// A lane's two neighbouring pixels (elements e = 0, 1 of fragment j) lie in a sector that starts `head`
/// pixels after a fragment does. Sector s of a tile is its pixels 8 (s - 1) + head ... + 7: a lane's elements
/// that come before `head` in their fragment ("early") belong to sector s = j, the others to s = j + 1. So
/// sectors 1 ... 15 are whole, but for the one in which a narrow tile ends, and sectors 0 and 16 are shared
/// with the tiles before and after it: a lane has elements in only one of the two. Rows have an even number
/// of outputs, so that a lane's two elements are never in different sectors.
class Epilogue {
 public:
  __device__ __forceinline__ Epilogue(const EpilogueLane& lane, const Tile& tile) : me_(lane) {
    const int pixel = 2 * (me_.lane % 4), head = -static_cast<int>(tile.at + me_.channel_at) & (kSector - 1);
    early_ = pixel < head;
    const int first = early_ ? pixel : pixel - kSector;
    end_ = tile.width - first;
    out_[0] = me_.y + (tile.at + me_.channel_at) + first;
    out_[1] = out_[0] + me_.half_step;
    asm volatile("" : "+l"(out_[0]), "+l"(out_[1]));  // else 64-bit addresses are rebuilt at every use
  }

  /// Sectors go through the activation in groups, but for groups in which no lane has elements. Where all
  /// have, the branch still keeps the groups apart: forms in which the compiler mixed them were slower.
  __device__ __forceinline__ void run(const Accumulator& sums) {
    constexpr int kGroup = 4;
    static_assert(kTileSectors % kGroup == 0);
#pragma unroll
    for (int first = 0; first < kTileSectors; first += kGroup) {
      int sector[kGroup];
      bool exist[kGroup], any = false;  // this lane's elements
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int s = first + i;  // 0 stands for 16 as well
        sector[i] = s == 0 && !early_ ? kTileSectors : s;
        exist[i] = sector[i] * kSector < end_;
        any |= exist[i];
      }
      if (!__any_sync(~0u, any)) continue;
      float v[4 * kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const int s = first + i;
          const int early = 4 * s + t, late = 4 * ((s + kTileSectors - 1) % kTileSectors) + t;
          v[4 * i + t] = pre_activation(early_ ? sums[early] : sums[late], t);
        }
      mish_of_mish_of_ln2(v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) store_pairs(v + 4 * i, sector[i], exist[i]);
      __syncwarp();
    }
  }

 private:
  static constexpr int kTileSectors = kBlockPixels / kSector;  // 16; with the skew a tile touches one more

  __device__ __forceinline__ float pre_activation(float sum, int t) const {
    return __fmaf_rn(sum, me_.affine[t / 2].scale, me_.affine[t / 2].bias);
  }

  /// A lane's elements of both its channels.
  __device__ __forceinline__ void store_pairs(const float* v, int sector, bool exist) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool live = me_.channel + 8 * half < me_.live_channels;
      float* const out = out_[half] + sector * kSector;
      if (live && exist) ptx::store_global(out, make_float2(v[2 * half], v[2 * half + 1]), me_.policy);
    }
  }

  const EpilogueLane& me_;
  bool early_;
  // Of this lane, as if sector 0 were one of its own:
  float* out_[2];  // where its elements go, in its two channels
  int end_;        // pixels from there to the tile's end
};

__device__ __forceinline__ void consume_rows(const Args& args, SharedStorage& shared, int part, int rank,
                                             int first_k, int consumer, int warp) {
  EpilogueLane me;
  me.lane = threadIdx.x % 32;
  me.channel = 16 * warp + me.lane / 4;
  me.live_channels = args.k - first_k;
  const std::int64_t plane = std::int64_t{args.p} * args.q;
  me.y = args.y;
  me.channel_at = me.channel * plane;
  me.half_step = 8 * plane;
  for (int i = 0; i < 2; ++i) me.affine[i] = args.affine[first_k + me.channel + 8 * i];
  me.policy = ptx::kEvictLast;
  if (consumer == kConsumers - 1) pass_turn(consumer);  // the first turn is consumer 0's
  ptx::mbarrier_wait(ptx::shared_address(&shared.filter_full), 0);

  RowRelease rows(shared, rank);
  Walk walk(args, part);
  int earlier_tiles = 0;
  for (Run run; walk.next(args, run);) {
    rows.open_run();
    const int columns = min(kStripColumns, args.q - run.strip * kStripColumns);
    const int row_shift = columns > kBlockPixels ? 1 : 0, tiles_per_row = 1 << row_shift;
    static_assert(kTilesPerRow == 2);
    const int last_width = columns - (tiles_per_row - 1) * kBlockPixels;
    const int tiles = run.rows << row_shift;
#pragma unroll 1
    for (int t = (consumer + kConsumers - earlier_tiles % kConsumers) % kConsumers; t < tiles;
         t += kConsumers) {
      const int row = t >> row_shift, column_tile = t & (tiles_per_row - 1);
      rows.release_until(row);
      Accumulator sums;
      mma_stage(args, sums, shared, rows, run, row, column_tile * kBlockPixels, consumer);
      const int next = t + kConsumers;
      rows.release_until(next < tiles ? min(next >> row_shift, row + kFilterSize) : row + kFilterSize);

      Tile tile;
      tile.at = (std::int64_t{run.image} * args.k + first_k) * plane +
                std::int64_t{run.first_row + row} * args.q + run.strip * kStripColumns +
                column_tile * kBlockPixels;
      tile.width = column_tile == tiles_per_row - 1 ? last_width : kBlockPixels;
      Epilogue(me, tile).run(sums);
    }
    rows.release_until(run.input_rows());
    rows.close_run(run.input_rows());
    earlier_tiles += tiles;
  }
}

__device__ __forceinline__ void init_barriers(const Args& args, SharedStorage& shared) {
  ptx::mbarrier_init(ptx::shared_address(&shared.filter_full), 1);
  for (int i = 0; i < kRingRows; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&shared.row_full[i]), kWarpsPerGroup);
    ptx::mbarrier_init(ptx::shared_address(&shared.row_empty[i]),
                       kClusterBlocks * kConsumers * kWarpsPerGroup);
  }
  for (auto& barriers : shared.stage_full)
    for (std::uint64_t& barrier : barriers)
      ptx::mbarrier_init(ptx::shared_address(&barrier), Stage::arrivals(args));
  ptx::fence_mbarrier_init();
}

/// What a thread block computes: its part of the rows, its rank in its cluster, and its block of output
/// channels.
struct BlockPlace {
  int part, rank, k_block;
};
__device__ __forceinline__ BlockPlace place_of_block(const Args& args) {
  const int rank = blockIdx.x % kClusterBlocks, cluster = blockIdx.x / kClusterBlocks;
  return {cluster / args.k_clusters, rank, cluster % args.k_clusters * kClusterBlocks + rank};
}

static __global__ void __cluster_dims__(kClusterBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(memory);
  const auto [part, rank, k_block] = place_of_block(args);
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);

  ptx::start_kernel_after();
  if (threadIdx.x == 0) init_barriers(args, shared);
  ptx::cluster_sync();  // the peer's barriers exist before anything is sent to them

  if (group == 0) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    produce_rows(args, shared, part, rank, warp);
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    if (group == 1 && warp == 0 && ptx::elect_one())
      load_filter(shared.filter, args.filter, k_block, ptx::shared_address(&shared.filter_full));
    __syncwarp();
    consume_rows(args, shared, part, rank, k_block * kBlockK, group - 1, warp);
  }
  __syncwarp();
  ptx::cluster_sync();  // the peer may still copy to, or arrive at, this block's shared memory
}

// --- what fp16 cannot serve ------------------------------------------------------------------------------

/// The outputs of a row of a strip; see recompute_if_flagged().
struct RowOutputs {
  const std::uint8_t* first_flag;  // of the three input rows that the row's windows are in
  Position first;
  int columns;

  __device__ const std::uint8_t* flags() const { return first_flag; }
  __device__ int flag_count() const { return kFilterSize * kPlanes; }
  __device__ int outputs() const { return columns; }
  __device__ Position output(int i) const { return {first.row, first.column + i}; }
  __device__ bool exists(const Position&) const { return true; }
};

inline constexpr int kSecondPassThreads = 512;

/// The pass behind the kernel, of as many thread blocks: of what a block of the kernel computed, the flagged
/// outputs again in fp32, an output a warp.
///
/// By the kernel's own warps it would cost less still, but with that code in it the compiler moves what the
/// multiplications need out of the uniform registers.
static __global__ void __launch_bounds__(kSecondPassThreads)
    second_pass_kernel(const __grid_constant__ Args args, RecomputeArgs again) {
  const auto [part, rank, k_block] = place_of_block(args);
  const Channels channels{k_block * kBlockK, min((k_block + 1) * kBlockK, args.k)};
  ptx::wait_for_kernel_before();
  Walk walk(args, part);
  for (Run run; walk.next(args, run);) {
    const std::uint8_t* flags =
        args.raised + std::int64_t{args.row_id(run.image * args.strips + run.strip, run.first_row)} * kPlanes;
    if (!any_flagged(reinterpret_cast<const PlaneFlags*>(flags), run.input_rows())) continue;
    const Position first{std::int64_t{run.image} * args.h + run.first_row, run.strip * kStripColumns};
    const int columns = min(kStripColumns, args.q - first.column);
    for (int row = 0; row < run.rows; ++row, flags += kPlanes)
      recompute_if_flagged<1>(again, RowOutputs{flags, {first.row + row, first.column}, columns}, channels,
                              threadIdx.x / 32, kSecondPassThreads / 32);
  }
}

}  // namespace convmish::hopper::row_ring
