// The fused convolution with two-term multiplicands for few input channels (c <= 64) and wide rows: both
// terms of the filter resident, input rows in a ring.
//
// A cluster of two thread blocks walks down the output rows of a strip of columns. Each block computes 64 of
// the cluster's 128 output channels, so both need every input row: each splits half of the input channels
// into fp16 terms and copies them to its peer, and a row of x is read once. The filter's two terms fill 144
// KB; what they leave holds three input rows of 90 pixels.
//
//   producer, 1 warpgroup    global fp32 -> registers -> fp16 terms -> ring slot, here and (bulk copy) in the
//                            peer
//   consumers, 2 warpgroups  rows of 64 channels x 88 pixels in turn: wgmma, 3 products over each of 9 taps,
//                            bias, Mish, Mish, store. Turns are strict: one multiplies while the other is in
//                            its epilogue, which is shorter
//
// Who waits for whom:
//   row_full[slot]    consumers wait; completed by the 4 producer warps and the bytes of the peer's copies
//   row_empty[slot]   producers wait, because they write in both blocks: completed by the warps of the three
//                     output rows that read the row, in both. A row's first tap row is its last use, so that
//                     the slot is free in the middle of a turn, and filled again before the next turn's end
//   turn (named)      consumer i waits for consumer i - 1 to have issued nearly all its wgmma
//
// Accuracy: the tensor cores truncate what they add up, by about 2^-22 of the sum at each of their steps of
// 16 channels. So their sums of high terms are taken out after 12 steps, one row of taps, and added up by the
// consumer, while the tensor cores do that row's low filter terms. Products with a low term have sums apart.
#pragma once

#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"

namespace convmish::hopper::split_ring {

inline constexpr int kTerms = 2;
inline constexpr int kClusterBlocks = 2;
inline constexpr int kClusterK = kClusterBlocks * kBlockK;
inline constexpr int kConsumers = 2;
inline constexpr int kWarpsPerGroup = 4;
inline constexpr int kThreads = 128 * (1 + kConsumers);
inline constexpr int kStripColumns = 88;  // outputs of a turn: wgmma's N; strips start on sectors of x
inline constexpr int kRowPixels = kStripColumns + kFilterSize - 1;  // input pixels of a ring slot
inline constexpr int kRingRows = kFilterSize;
// A plane's high terms, then its low ones: one run of pixels, so that a wgmma with the filter's high terms
// takes both, and reads these from shared memory, whose bandwidth is what binds, once. A gap keeps the two
// apart by whole fragments of its sums.
inline constexpr int kLowAt = (kRowPixels + 7) / 8 * 8;
inline constexpr int kBothColumns = kLowAt + kStripColumns;  // of the product of high filter terms with both
inline constexpr int kPlaneBytes = (kLowAt + kRowPixels) * kGranuleBytes;
inline constexpr int kSlotBytes = kPlanes * kPlaneBytes;
inline constexpr int kPlanesPerBlock = kPlanes / kClusterBlocks;
static_assert(kPlanesPerBlock == kWarpsPerGroup, "one producer warp a plane");
inline constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * 128 <= kThreads * 168,
              "setmaxnreg hands out what the launch allots: 65536 / 384 threads, rounded down to 8");

struct SharedStorage {
  alignas(1024) __half filter[kTaps][kTerms][kBlockK][kBlockC];
  alignas(128) __half ring[kRingRows][kPlanes][kLowAt + kRowPixels][kPlaneChannels];
  std::uint64_t row_full[kRingRows];
  std::uint64_t row_empty[kRingRows];
};
static_assert(sizeof(SharedStorage) <= 232448, "232448 B: sm_90 opt-in limit");
static_assert(sizeof(SharedStorage::ring) == kRingRows * kSlotBytes);

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  const float* x;
  float* y;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to kClusterK
  std::uint8_t* raised;         // [image][strip][input row][plane]: the range guard's flags
  int n, c, h, w, k, p, q;
  int strips;      // of kStripColumns output columns
  int k_clusters;  // clusters needed for all output channels
  int parts;       // runs of rows that the batch is divided in

  CONVMISH_HD std::int64_t batch_rows() const { return std::int64_t{n} * p; }
  CONVMISH_HD std::int64_t row_id(int image, int strip, int row) const {
    return (std::int64_t{image} * strips + strip) * h + row;
  }
};

/// What the range guard's flags mean, for the second pass: a unit is an output row of a strip.
struct Units {
  Args args;

  CONVMISH_HD std::int64_t count() const { return args.batch_rows() * args.strips; }
  __device__ int flag_count() const { return kFilterSize * kPlanes; }  // of three input rows
  __device__ OutputUnit unit(std::int64_t i) const {
    const auto image_strip = static_cast<int>(i / args.p), row = static_cast<int>(i % args.p);
    const int image = image_strip / args.strips, strip = image_strip % args.strips;
    return {.first_row = std::int64_t{image} * args.h + row,
            .first_column = strip * kStripColumns,
            .rows = 1,
            .columns = min(kStripColumns, args.q - strip * kStripColumns),
            .flags = args.raised + args.row_id(image, strip, row) * kPlanes};
  }
  __device__ Granule granule(int flag) const {
    return {.first_row = flag / kPlanes,
            .rows = 1,
            .first_channel = flag % kPlanes * kPlaneChannels,
            .channels = kPlaneChannels};
  }
};

/// What a cluster computes: the strip's part of the batch's output rows, for its output channels.
/// Neighbouring strips of the same rows are computed at the same time: what they share of sectors meets in
/// the L2.
struct Place {
  int rank, strip, k_block;
  std::int64_t first_row, end_row;  // output rows, counted through the batch

  __device__ explicit Place(const Args& args) {
    rank = blockIdx.x % kClusterBlocks;
    int cluster = blockIdx.x / kClusterBlocks;
    k_block = cluster % args.k_clusters * kClusterBlocks + rank;
    cluster /= args.k_clusters;
    strip = cluster % args.strips;
    const int part = cluster / args.strips;
    first_row = args.batch_rows() * part / args.parts;
    end_row = args.batch_rows() * (part + 1) / args.parts;
  }
};

/// Consecutive output rows of one image.
struct Run {
  int image, first_row, rows;

  __device__ Run(const Args& args, std::int64_t batch_row, std::int64_t end) {
    image = static_cast<int>(batch_row / args.p);
    first_row = static_cast<int>(batch_row % args.p);
    rows = static_cast<int>(min(std::int64_t{args.p - first_row}, end - batch_row));
  }
  __device__ int input_rows() const { return rows + kFilterSize - 1; }
};

// --- producer --------------------------------------------------------------------------------------------

inline constexpr int kRowGranules = (kRowPixels + 31) / 32;  // granules a lane loads of a row

using RowGranules = float[kRowGranules][kPlaneChannels];

/// Steps through the input rows of a thread block's runs, for one warp's plane of 8 channels.
class RowReader {
 public:
  __device__ RowReader(const Args& args, const Place& place, int plane)
      : args_(args), place_(place), plane_(plane), run_(args, place.first_row, place.end_row) {
    at_ = place.first_row;
    open_run();
  }
  __device__ bool more() const { return at_ < place_.end_row; }
  __device__ std::uint8_t* flag() const {
    return args_.raised + args_.row_id(run_.image, place_.strip, run_.first_row + row_) * kPlanes + plane_;
  }
  __device__ __forceinline__ void load(RowGranules& granules) const {
    const float* source = source_;
    const std::int64_t channel_stride = std::int64_t{args_.h} * args_.w;
    const int live_pixels = args_.w - first_column(), live_channels = args_.c - plane_ * kPlaneChannels;
    asm volatile("" : "+l"(source));
    if (live_channels >= kPlaneChannels && live_pixels > 32 * (kRowGranules - 1)) {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += channel_stride)
#pragma unroll
        for (int i = 0; i < kRowGranules; ++i)
          granules[i][c] = ptx::load_global_once(source + 32 * i, ptx::kEvictFirst);
    } else {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c, source += channel_stride)
#pragma unroll
        for (int i = 0; i < kRowGranules; ++i)
          granules[i][c] = c < live_channels && 32 * i < live_pixels
                               ? ptx::load_global_once(source + 32 * i, ptx::kEvictFirst)
                               : 0.0f;
    }
  }
  __device__ __forceinline__ void advance() {
    source_ += args_.w;
    if (++row_ < run_.input_rows()) return;
    at_ += run_.rows;
    if (!more()) return;
    run_ = Run(args_, at_, place_.end_row);
    open_run();
  }

 private:
  __device__ int first_column() const {
    return place_.strip * kStripColumns + threadIdx.x % 32;
  }
  __device__ void open_run() {
    row_ = 0;
    const std::int64_t channel = std::int64_t{run_.image} * args_.c + plane_ * kPlaneChannels;
    source_ = args_.x + (channel * args_.h + run_.first_row) * args_.w + first_column();
  }

  const Args& args_;
  const Place& place_;
  int plane_;
  std::int64_t at_;
  Run run_;
  int row_;
  const float* source_;  // this lane's first pixel in the plane's first channel
};

/// Fills the ring: each warp one plane of every row.
__device__ __forceinline__ void produce_rows(const Args& args, SharedStorage& shared, const Place& place,
                                             int warp) {
  const int lane = threadIdx.x % 32;
  const int plane = place.rank * kPlanesPerBlock + warp;
  const std::uint32_t peer = place.rank ^ 1;
  const ptx::SharedAddress ring = ptx::shared_address(shared.ring);
  const ptx::SharedAddress peer_ring = ptx::map_to_rank(ring, peer);
  const ptx::SharedAddress peer_full = ptx::map_to_rank(ptx::shared_address(shared.row_full), peer);

  RowReader reader(args, place, plane);
  int slot = 0;
  std::uint32_t parity = 0;
  RowGranules granules;
  if (reader.more()) reader.load(granules);
  while (reader.more()) {
    std::uint8_t* const flag = reader.flag();
    RangeGuard guard;
    // Both blocks' consumers must have left the slot, for the peer's copy of it is written as well.
    ptx::mbarrier_wait(ptx::shared_address(&shared.row_empty[slot]), parity ^ 1);
    const std::uint32_t plane_offset = slot * kSlotBytes + plane * kPlaneBytes;
#pragma unroll
    for (int i = 0; i < kRowGranules; ++i) {
#pragma unroll
      for (int c = 0; c < kPlaneChannels; ++c) guard.see(granules[i][c]);
      uint4 terms[kTerms];
      convert_granule(granules[i], terms);
      const int pixel = 32 * i + lane;
      if (pixel < kRowPixels)
#pragma unroll
        for (int term = 0; term < kTerms; ++term)
          ptx::store_shared(ring + plane_offset + (term * kLowAt + pixel) * kGranuleBytes, terms[term]);
    }
    reader.advance();
    if (reader.more()) reader.load(granules);
    const bool raised = __any_sync(~0u, guard.raised());
    ptx::fence_proxy_async();  // wgmma and the bulk copy read what was just written
    __syncwarp();
    if (lane == 0) {
      const ptx::SharedAddress full = ptx::shared_address(&shared.row_full[slot]);
      if (warp == 0)  // what the peer copies to here
        ptx::mbarrier_arrive_expect_tx(full, kPlanesPerBlock * kPlaneBytes);
      else
        ptx::mbarrier_arrive(full);
      ptx::bulk_copy_to_cluster(peer_ring + plane_offset, ring + plane_offset, kPlaneBytes,
                                peer_full + slot * sizeof(std::uint64_t));
      *flag = raised;
    }
    if (++slot == kRingRows) slot = 0, parity ^= 1;
  }
}

// --- consumers -------------------------------------------------------------------------------------------

using RowSums = SumsOf<kStripColumns>;

/// The ring as a consumer warp sees it. Rows are counted from the start of the current run.
class RingRows {
 public:
  __device__ RingRows(SharedStorage& shared, int rank)
      : empty_(ptx::shared_address(shared.row_empty)),
        peer_empty_(ptx::map_to_rank(empty_, rank ^ 1)),
        full_(ptx::shared_address(shared.row_full)) {}

  __device__ void close_run(const Run& run) { base_ += run.input_rows(); }

  /// Waits for row `row` of the run and returns its slot.
  __device__ __forceinline__ unsigned wait(int row) const {
    const unsigned at = base_ + row;
    ptx::mbarrier_wait(full_ + at % kRingRows * 8, at / kRingRows & 1);
    return at % kRingRows;
  }

  /// Output row `row` has no more use for the input row of its tap row r. Every input row counts on three
  /// output rows: the run's first and last also speak for those that would be before and after them.
  __device__ __forceinline__ void release(const Run& run, int row, int r) const {
    if (threadIdx.x % 32 != 0) return;
    const unsigned slot = (base_ + row + r) % kRingRows;
    const int arrivals = 1 + (row == 0 ? kFilterSize - 1 - r : 0) + (row == run.rows - 1 ? r : 0);
    ptx::mbarrier_arrive(empty_ + slot * 8, arrivals);
    ptx::mbarrier_arrive_cluster(peer_empty_ + slot * 8, arrivals);
  }

 private:
  ptx::SharedAddress empty_, peer_empty_, full_;
  unsigned base_ = 0;  // rows of earlier runs
};

inline constexpr int kTurnBarrier = 1;  // named barriers 1 ... kConsumers; 0 is __syncthreads

__device__ __forceinline__ void wait_for_turn(int consumer) {
  ptx::named_barrier_sync(kTurnBarrier + consumer, 2 * 128);
}
__device__ __forceinline__ void pass_turn(int consumer) {
  ptx::named_barrier_arrive(kTurnBarrier + (consumer + 1) % kConsumers, 2 * 128);
}

/// sums, low = the row's products with high filter terms, and 2^11 times those of high pixel and low filter
/// terms.
__device__ __forceinline__ void mma_stage(RowSums& sums, RowSums& low, SharedStorage& shared,
                                          const RingRows& rows, const Run& run, int row, int consumer) {
  constexpr std::uint64_t kLowFilter = ptx::descriptor_step(kTapBytes);
  SumsOf<kBothColumns> both;  // of one row of taps: high pixel terms, then low ones
  wait_for_turn(consumer);
#pragma unroll
  for (int r = 0; r < kFilterSize; ++r) {
    const unsigned slot = rows.wait(row + r);
    const std::uint64_t pixels = pixel_descriptor(ptx::shared_address(shared.ring[slot]), kPlaneBytes);
    const std::uint64_t filter = filter_descriptor(ptx::shared_address(shared.filter[r * kFilterSize]));
    const auto tap = [&](int s) { return filter + ptx::descriptor_step(s * kTerms * kTapBytes); };
    const auto window = [&](int s) { return pixels + ptx::descriptor_step(s * kGranuleBytes); };
    ptx::wgmma_fence();
#pragma unroll
    for (int s = 0; s < kFilterSize; ++s) mma_tap<kBothColumns>(both, tap(s), window(s), kPlaneBytes, s == 0);
    ptx::wgmma_commit_group();
    if (r > 0) {
      ptx::wgmma_wait_group<1>();  // all of the tap row before
      rows.release(run, row, r - 1);
    }
    ptx::wgmma_fence();
    if (r == kFilterSize - 1) pass_turn(consumer);
#pragma unroll
    for (int s = 0; s < kFilterSize; ++s)
      mma_tap<kStripColumns>(low, tap(s) + kLowFilter, window(s), kPlaneBytes, r == 0 && s == 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();  // `both`, while the tensor cores are at `low`
#pragma unroll
    for (int i = 0; i < kStripColumns / 2; ++i)
      sums[i] = __fmaf_rn(both[kLowAt / 2 + i], kLowScale, r == 0 ? both[i] : sums[i] + both[i]);
  }
  ptx::wgmma_wait_group<0>();
  rows.release(run, row, kFilterSize - 1);
}

/// What a lane needs in every epilogue.
struct EpilogueLane {
  std::int64_t channel_at;  // floats from an image of y to the strip's first pixel in this lane's channel
  std::int64_t half_step;   // and on to the channel 8 farther, which is this lane's too
  bool live[2];             // whether these channels exist
  ChannelAffine affine[2];
  int pixel;  // this lane's first in a fragment
};

/// Bias, Mish, Mish and stores of a row of `width` pixels, in whole sectors but for its ends.
///
/// A lane's two neighbouring pixels (elements e = 0, 1 of fragment j) lie in a sector that starts `head`
/// pixels after a fragment does: the elements before `head` ("early") in sector j, the others in the next.
/// kEven: rows have an even number of outputs, so that a lane's two elements are never in different sectors.
template <bool kEven>
__device__ __forceinline__ void store_row(float* y, std::int64_t at, const RowSums& sums, const RowSums& low,
                                          const EpilogueLane& me, int width) {
  constexpr int kSector = 8;  // floats in the 32 bytes that the L2 writes as one
  constexpr int kFragments = kStripColumns / kSector;
  const int head = -static_cast<int>(at) & (kSector - 1);
  bool early[2];
  int place[2];  // of the lane's elements in a sector
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    early[e] = me.pixel + (kEven ? 0 : e) < head;
    place[e] = kEven && e == 1 ? place[0] + 1 : me.pixel + e - head & kSector - 1;
  }
  float* out[2];
  out[0] = y + at + head - kSector + place[0];
  out[1] = out[0] + me.half_step;
  asm volatile("" : "+l"(out[0]), "+l"(out[1]));  // else 64-bit addresses are rebuilt at every use
  // Fragment `sector` holds the early elements of sector `sector`, the fragment before it the late ones.
  float before[4] = {};
  const auto store_sector = [&](int sector, const float* v) {
    const int pixel[2] = {kSector * sector + me.pixel - (early[0] ? 0 : kSector),
                          kSector * sector + me.pixel + 1 - (early[1] ? 0 : kSector)};
    float now[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      now[t] = early[t % 2] ? v[t] : before[t];
      before[t] = v[t];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const to = out[half] + kSector * sector;
      const bool first = me.live[half] && pixel[0] >= 0 && pixel[0] < width;
      if (kEven) {  // both or neither
        if (first) ptx::store_global(to, make_float2(now[2 * half], now[2 * half + 1]), ptx::kEvictLast);
      } else {
        const bool second = me.live[half] && pixel[1] >= 0 && pixel[1] < width;
        if (first) ptx::store_global(to, now[2 * half], ptx::kEvictLast);
        if (second) ptx::store_global(to + place[1] - place[0], now[2 * half + 1], ptx::kEvictLast);
      }
    }
  };
  constexpr int kGroup = 4;  // fragments that go through the activation together
#pragma unroll
  for (int first = 0; first < kFragments; first += kGroup) {
    float v[4 * kGroup];
#pragma unroll
    for (int i = 0; i < 4 * kGroup; ++i) {
      const int element = min(4 * first + i, kStripColumns / 2 - 1);  // the last group is not full
      v[i] = __fmaf_rn(__fmaf_rn(low[element], kLowScale, sums[element]), me.affine[i / 2 % 2].scale,
                       me.affine[i / 2 % 2].bias);
    }
    mish_of_mish_of_ln2(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      if (first + i < kFragments) store_sector(first + i, v + 4 * i);
  }
  constexpr float kNone[4] = {};
  store_sector(kFragments, kNone);
}

template <bool kEven>
__device__ __forceinline__ void consume_rows(const Args& args, SharedStorage& shared, const Place& place,
                                             int consumer, int warp) {
  const int lane = threadIdx.x % 32;
  const int channel = place.k_block * kBlockK + 16 * warp + lane / 4;
  const std::int64_t plane = std::int64_t{args.p} * args.q;
  EpilogueLane me;
  me.pixel = 2 * (lane % 4);
  me.channel_at = channel * plane + place.strip * kStripColumns;
  me.half_step = 8 * plane;
  for (int half = 0; half < 2; ++half) {
    me.live[half] = channel + 8 * half < args.k;
    me.affine[half] = args.affine[channel + 8 * half];
  }
  const int width = min(kStripColumns, args.q - place.strip * kStripColumns);
  if (consumer == kConsumers - 1) pass_turn(consumer);  // the first turn is consumer 0's

  RingRows rows(shared, place.rank);
  int turn = consumer;  // rows until this consumer's next
  for (std::int64_t at = place.first_row; at < place.end_row;) {
    const Run run(args, at, place.end_row);
    const std::int64_t image =
        std::int64_t{run.image} * args.k * plane + me.channel_at + std::int64_t{run.first_row} * args.q;
#pragma unroll 1
    for (; turn < run.rows; turn += kConsumers) {
      RowSums sums, low;
      mma_stage(sums, low, shared, rows, run, turn, consumer);
      store_row<kEven>(args.y, image + std::int64_t{turn} * args.q, sums, low, me, width);
    }
    turn -= run.rows;
    rows.close_run(run);
    at += run.rows;
  }
}

__device__ __forceinline__ void init_barriers(SharedStorage& shared) {
  for (int i = 0; i < kRingRows; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&shared.row_full[i]), kWarpsPerGroup);
    ptx::mbarrier_init(ptx::shared_address(&shared.row_empty[i]),
                       kClusterBlocks * kFilterSize * kWarpsPerGroup);
  }
  ptx::fence_mbarrier_init();
}

__device__ __forceinline__ void load_filter(const Args& args, SharedStorage& shared, int k_block) {
  constexpr int kVectors = sizeof(shared.filter) / sizeof(uint4);
  const uint4* const source = args.filter + std::int64_t{k_block} * kVectors;
  uint4* const destination = reinterpret_cast<uint4*>(shared.filter);
  for (int i = threadIdx.x; i < kVectors; i += kThreads) destination[i] = source[i];
  ptx::fence_proxy_async();
}

/// kEven: rows have an even number of outputs, so that a lane's two pixels can be stored together.
template <bool kEven>
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(memory);
  const Place place(args);
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);

  if (threadIdx.x == 0) init_barriers(shared);
  load_filter(args, shared, place.k_block);
  __syncthreads();
  ptx::cluster_sync();  // the peer's barriers exist before anything is sent to them

  if (group == 0) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    produce_rows(args, shared, place, warp);
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    consume_rows<kEven>(args, shared, place, group - 1, warp);
  }
  __syncwarp();
  ptx::cluster_sync();  // the peer may still copy to, or arrive at, this block's shared memory
}

}  // namespace convmish::hopper::split_ring
