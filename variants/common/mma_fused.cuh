// The fused convolution on the tensor cores that every GPU from sm_80 on has: mma.sync, fp16 multiplicands in
// one term or two, fp32 sums.
//
// Implicit GEMM with output channels as M and pixels as N: a lane then has pairs of neighbouring pixels of
// one channel, and four lanes a sector of y. A thread block stays with kTileK output channels and walks over
// units of some rows x columns of outputs. A unit is two tiles, one for each of two groups of warps. The
// groups keep their own time: while one is in its epilogue, the other has the tensor cores to itself. Where
// x is staged they take turns at the epilogues: two at once take longer, and shared memory has room to
// exchange the rows of one.
//
// A stage holds 16 input channels of a tile's input, halo included, as [term][plane of 8 channels][pixel]
// [8 halves]: eight neighbouring pixels are 128 bytes in a row, which ldmatrix reads without bank conflicts,
// and a filter tap is the same tile from an address farther on, an immediate of the instruction. An input
// element is loaded and converted once for all taps and all the block's output channels: by its group, in
// between the multiplications of earlier stages. On its way it passes through registers, or, "staged", where
// one term and a resident filter leave the room, through shared memory: that takes longer to begin. Two terms
// have a kernel of their own where the filter is resident: mma_ahead.cuh.
//
// The filter lies in the order of mma's fragments, so that a lane loads its share of a 16 x 16 matrix with
// one instruction. It is cut in slots: the three taps of a column of the filter, of 16 input channels. Where
// all slots fit beside the stages they are loaded once ("resident"); otherwise they pass through a ring that
// both groups share, filled by all threads, and the groups may be some slots apart.
//
// Who waits for whom:
//   group barrier (named)     once a stage, the warps of a group: the next stage is there, this one is free
//   turn (named)              a group before its epilogue, where they take turns: the other is at its end
//   filter_full (mbarrier)    everybody, for the copies of all threads
//   filter_empty (mbarrier)   everybody before they refill a slot, for all warps
#pragma once

#include "variants/common/fast_divider.hpp"
#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"
#include "variants/common/mma_ptx.cuh"

namespace convmish::mma {

using hopper::ChannelAffine;
using hopper::kPlaneChannels;

inline constexpr int kStepC = 16;                           // input channels an mma sums over: its K
inline constexpr int kFragmentK = 16, kFragmentPixels = 8;  // of an mma: its M and N
inline constexpr int kFragmentBytes = kFragmentK * kStepC * sizeof(__half);
inline constexpr int kGranuleBytes = hopper::kGranuleBytes;

/// What a thread block computes at a time, and who of it.
struct Tiling {
  int warp_k, warp_rows, warp_columns;     // outputs of a warp
  int warps_k, warps_below, warps_beside;  // of a group: in output channels, rows and columns
  int groups;                              // one below the other
};

template <int kTerms_, Tiling kTiling>
struct Config {
  static constexpr int kTerms = kTerms_;
  static constexpr int kGroups = kTiling.groups, kWarpsK = kTiling.warps_k, kWarpsBelow = kTiling.warps_below;
  static constexpr int kGroupWarps = kWarpsK * kWarpsBelow * kTiling.warps_beside;
  static constexpr int kGroupThreads = 32 * kGroupWarps, kThreads = kGroups * kGroupThreads;
  static constexpr int kWarpRows = kTiling.warp_rows, kWarpColumns = kTiling.warp_columns;
  static constexpr int kFragmentsK = kTiling.warp_k / kFragmentK,
                       kFragmentsQ = kWarpColumns / kFragmentPixels;
  static constexpr int kWarpK = kFragmentsK * kFragmentK, kTileK = kWarpsK * kWarpK;
  // Fragments are loaded in pairs: side by side, or where a warp is one fragment wide one below the other.
  static constexpr int kPairRows = kFragmentsQ == 1 ? 2 : 1, kPairsQ = kFragmentsQ == 1 ? 1 : kFragmentsQ / 2;
  static constexpr int kTileRows = kWarpRows * kWarpsBelow;
  static constexpr int kTileColumns = kWarpColumns * kTiling.warps_beside;
  static constexpr int kUnitRows = kGroups * kTileRows;
  static constexpr int kHaloRows = kTileRows + kFilterSize - 1, kHaloColumns = kTileColumns + kFilterSize - 1;
  static constexpr int kStagePixels = kHaloRows * kHaloColumns;
  static constexpr int kPlaneBytes = kStagePixels * kGranuleBytes;
  static constexpr int kStagePlanes = kStepC / kPlaneChannels;
  static constexpr int kTermBytes = kStagePlanes * kPlaneBytes, kStageBytes = kTerms * kTermBytes;
  static constexpr int kSlotTapBytes = kTileK / kFragmentK * kTerms * kFragmentBytes;
  static constexpr int kSlotBytes = kFilterSize * kSlotTapBytes;
  static_assert(kFragmentsQ % 2 == 0 || (kFragmentsQ == 1 && kWarpRows % 2 == 0));
  static constexpr int kGranules = kStagePlanes * kStagePixels;
  static constexpr int kPlanePairs = kStagePixels / 2;  // of neighbours in a row
  static_assert(kHaloColumns % 2 == 0);
};

/// Of a group, in shared memory.
template <class C, bool kStaged>
struct StageRing {
  // Staged: one in use, one being filled. Otherwise one between them is complete already.
  static constexpr int kStages = kStaged ? 2 : 3;
  static constexpr int kRawBytes = kStaged ? C::kGranules * kPlaneChannels * 4 : 0;  // x as it is
  static constexpr int kBytes = kStages * C::kStageBytes + kRawBytes, kAllBytes = C::kGroups * kBytes;
};

/// The repacked filter: [block of kTileK channels][16 input channels][filter column][filter row][16 output
/// channels][term][lane][8 halves], a lane's halves in the order of mma's registers.
template <class C>
struct FilterLayout {
  static constexpr int kTerms = C::kTerms;
  int k_blocks, steps;

  explicit FilterLayout(const Shape& shape)
      : k_blocks(static_cast<int>((shape.k + C::kTileK - 1) / C::kTileK)),
        steps(static_cast<int>((shape.c + kStepC - 1) / kStepC)) {}

  int output_channels() const { return k_blocks * C::kTileK; }
  CONVMISH_HD int input_channels() const { return steps * kStepC; }
  std::int64_t bytes() const { return std::int64_t{k_blocks} * steps * kFilterSize * C::kSlotBytes; }

  /// Of a half.
  __device__ __forceinline__ std::int64_t index(int k, int c, int tap, int term) const {
    const std::int64_t slot =
        (std::int64_t{k / C::kTileK} * steps + c / kStepC) * kFilterSize + tap % kFilterSize;
    const int fragment =
        (tap / kFilterSize * (C::kTileK / kFragmentK) + k % C::kTileK / kFragmentK) * kTerms + term;
    const int row = k % kFragmentK, column = c % kStepC;
    const int lane = row % 8 * 4 + column % 8 / 2, word = column / 8 * 2 + row / 8;
    return (slot * C::kSlotBytes + fragment * kFragmentBytes) / 2 + lane * 8 + word * 2 + column % 2;
  }
};

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  const float* x;
  float* y;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to whole tiles
  std::uint8_t* raised;         // the range guard's flags: [tile][step][warp]; or see UnitsAhead
  float4* promoted;             // [thread block]: sums of two terms; see promote()
  int n, c, h, w, k, p, q;
  int k_tiles, parts;  // thread blocks: `parts` for each of the blocks of output channels
  int steps;           // of 16 input channels
  int slots;           // of the filter, in shared memory
  int stages;          // of both groups, where x is packed ahead
  std::int64_t plane;  // h * w
  int units;
  FastDividerOf<int> by_strips{1}, by_row_units{1};
};

/// Of a thread block, in memory.
template <class C>
CONVMISH_HD constexpr int promoted_vectors() {
  return C::kFragmentsK * C::kWarpRows * C::kFragmentsQ * C::kThreads;
}

template <class C, bool kThroughShared>
class RowExchange;
/// Fragments need none where a warp's rows are of one.
template <class C, bool kStaged>
using Exchange = RowExchange<C, (kStaged && C::kFragmentsQ > 1)>;

/// Bytes of shared memory; the layout is below, in Shared.
template <class C, bool kStaged>
constexpr std::int64_t shared_bytes(std::int64_t slots) {
  return StageRing<C, kStaged>::kAllBytes + Exchange<C, kStaged>::kBytes + slots * (C::kSlotBytes + 16);
}

/// Addresses in shared memory.
template <class C, bool kStaged>
struct Shared {
  ptx::SharedAddress stages, raw, slots, filter_full, filter_empty;

  /// With the stages of one group.
  __device__ Shared(const Args& args, const void* memory, int group) {
    using Ring = StageRing<C, kStaged>;
    const ptx::SharedAddress base = ptx::shared_address(memory);
    stages = base + group * Ring::kBytes;
    raw = stages + Ring::kStages * C::kStageBytes;
    slots = base + Ring::kAllBytes + Exchange<C, kStaged>::kBytes;
    filter_full = slots + args.slots * C::kSlotBytes;
    filter_empty = filter_full + args.slots * 8;
  }
};

/// A group's tile of a unit.
template <class C>
struct TilePlace {
  int image, first_row, first_column;

  __device__ __forceinline__ TilePlace(const Args& args, int unit, int group) {
    const auto [row_unit, strip] = args.by_strips.divide(unit);
    const auto [image_of_unit, row] = args.by_row_units.divide(row_unit);
    image = image_of_unit;
    first_row = row * C::kUnitRows + group * C::kTileRows;
    first_column = strip * C::kTileColumns;
  }
};

/// What the range guard's flags mean, for the second pass: a unit there is a tile here.
template <class C>
struct Units {
  Args args;

  CONVMISH_HD std::int64_t count() const { return std::int64_t{args.units} * C::kGroups; }
  CONVMISH_HD int flag_count() const { return args.steps * C::kGroupWarps; }
  __device__ hopper::OutputUnit unit(std::int64_t i) const {
    const TilePlace<C> place(args, static_cast<int>(i / C::kGroups), static_cast<int>(i % C::kGroups));
    return {.first_row = std::int64_t{place.image} * args.h + place.first_row,
            .first_column = place.first_column,
            .rows = max(0, min(C::kTileRows, args.p - place.first_row)),
            .columns = min(C::kTileColumns, args.q - place.first_column),
            .flags = args.raised + i * flag_count()};
  }
  __device__ hopper::Granule granule(int flag) const {
    return {.first_row = 0,
            .rows = C::kHaloRows,
            .first_channel = flag / C::kGroupWarps * kStepC,
            .channels = kStepC};
  }
};

/// This thread's, found anew where it is asked for: a register less during the multiplications.
template <class C>
__device__ __forceinline__ int thread_group() {
  return ptx::thread_index() / C::kGroupThreads;
}

/// A place in a ring and the parity of the pass through it.
struct RingCursor {
  int at = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance(int depth) {
    if (++at == depth) at = 0, parity ^= 1;
  }
};

// --- input -----------------------------------------------------------------------------------------------

/// A thread's way through the stages of its group.
template <class C, bool kStaged, bool kEven>
class InputFeed;

/// Loads, converts and stores its share of a stage, in two batches. Loads are two slots of the filter ahead
/// of the conversion; a stage is complete one step before its use.
template <class C, bool kEven>
class InputFeed<C, false, kEven> {
 public:
  __device__ InputFeed(const Args& args, ptx::SharedAddress stages, ptx::SharedAddress, int part, int group)
      : args_(args), unit_(part), group_(group) {
    at_ = stages + threadIdx.x % C::kGroupThreads * kGranuleBytes;
    end_ = at_ + kStages * C::kStageBytes;
    open_tile();
  }
  /// Before the first step.
  __device__ __forceinline__ void start() {
    load(0), load(1);
    store(0), store(1);
    next_stage();
    load(0), load(1);
    store(0);
  }
  /// Between the multiplications, before those with a slot of the filter.
  __device__ __forceinline__ void advance(int slot) {
    if (slot == 0) {
      store(1);
      next_stage();
      load(0);
    }
    if (slot == 1) load(1);
    if (slot == 2) store(0);
  }

 private:
  static constexpr int kStages = StageRing<C, false>::kStages;
  static constexpr int kBatchGranules =
      (C::kGranules + 2 * C::kGroupThreads - 1) / (2 * C::kGroupThreads);  // a thread

  __device__ __forceinline__ bool more() const { return unit_ < args_.units; }

  /// Pixels outside of the image are read at its edge: only outputs that do not exist see them.
  __device__ __forceinline__ void load(int index) {
    if (!more()) return;
#pragma unroll
    for (int i = 0; i < kBatchGranules; ++i) {
      const int granule = granule_index(index, i), pixel = granule % C::kStagePixels;
      const int channel = min(granule / C::kStagePixels, C::kStagePlanes - 1) * kPlaneChannels;
      const int row = min(first_row_ + pixel / C::kHaloColumns, args_.h - 1);
      const int column = min(first_column_ + pixel % C::kHaloColumns, args_.w - 1);
      const float* source = step_x_ + channel * args_.plane + (std::int64_t{row} * args_.w + column);
      const int live = args_.c - step_ * kStepC - channel;
      if ((step_ + 1) * kStepC <= args_.c) {
#pragma unroll
        for (int c = 0; c < kPlaneChannels; ++c, source += args_.plane) batches_[index][i][c] = __ldg(source);
      } else {
#pragma unroll
        for (int c = 0; c < kPlaneChannels; ++c, source += args_.plane)
          batches_[index][i][c] = c < live ? __ldg(source) : 0.0f;
      }
    }
  }

  __device__ __forceinline__ void store(int index) {
    if (!more()) return;
    uint4 granules[kBatchGranules][C::kTerms];
    lost_ |= hopper::convert_and_judge(batches_[index], granules);
#pragma unroll
    for (int i = 0; i < kBatchGranules; ++i) {
      const int first = (index * kBatchGranules + i) * C::kGroupThreads;
      if (first + C::kGroupThreads <= C::kGranules || granule_index(index, i) < C::kGranules)
#pragma unroll
        for (int term = 0; term < C::kTerms; ++term)
          ptx::store_shared(at_ + term * C::kTermBytes + first * kGranuleBytes, granules[i][term]);
    }
  }

  /// Both batches are stored: to the next stage.
  __device__ __forceinline__ void next_stage() {
    if (!more()) return;
    const bool lost = __any_sync(~0u, lost_);
    lost_ = false;
    if (threadIdx.x % 32 == 0)
      args_.raised[((std::int64_t{unit_} * C::kGroups + group_) * args_.steps + step_) * C::kGroupWarps +
                   threadIdx.x / 32 % C::kGroupWarps] = lost;
    step_x_ += kStepC * args_.plane;
    if (++step_ == args_.steps) {
      unit_ += args_.parts;
      open_tile();
    }
    at_ += C::kStageBytes;
    if (at_ == end_) at_ -= kStages * C::kStageBytes;
  }

  __device__ __forceinline__ void open_tile() {
    const TilePlace<C> place(args_, unit_, group_);
    first_row_ = place.first_row, first_column_ = place.first_column;
    step_x_ = args_.x + std::int64_t{place.image} * args_.c * args_.plane;
    step_ = 0;
  }
  static __device__ __forceinline__ int granule_index(int batch, int i) {
    return (batch * kBatchGranules + i) * C::kGroupThreads + static_cast<int>(threadIdx.x) % C::kGroupThreads;
  }

  const Args& args_;
  int unit_, group_, step_, first_row_, first_column_;
  const float* step_x_;          // the image's channel that the step starts with
  ptx::SharedAddress at_, end_;  // of this thread's first granule
  bool lost_ = false;
  float batches_[2][kBatchGranules][kPlaneChannels];
};

/// A thread's share of a stage, pairs of neighbouring pixels of 8 channels, passes through a place of the
/// thread's own in shared memory: copied there from x a step ahead, past the registers, and from there
/// converted into the stage. In batches, each converted before the multiplications with another slot of the
/// filter, and each copied for the next step as soon as its place is free. kEven: rows of x have an even
/// number of pixels, so that a pair is one vector.
template <class C, bool kEven>
class InputFeed<C, true, kEven> {
 public:
  __device__ InputFeed(const Args& args, ptx::SharedAddress stages, ptx::SharedAddress raw, int part,
                       int group)
      : args_(args), unit_(part) {
    const int thread = ptx::thread_index() % C::kGroupThreads;
    at_ = stages + thread * (2 * kGranuleBytes);
    raw_ = raw + thread * kPairBytes;
    flag_ = args.raised + (std::int64_t{unit_} * C::kGroups + group) * args.steps * C::kGroupWarps +
            ptx::thread_index() / 32 % C::kGroupWarps;
    open_tile();
  }
  /// Before the first step.
  __device__ __forceinline__ void start() {
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) copy(batch);
    next_step();
#pragma unroll
    for (int slot = 0; slot < kFilterSize; ++slot) advance(slot);
  }
  /// Between the multiplications, before those with a slot of the filter. Of the two warps of a group that
  /// share a scheduler, one converts later than the other, which multiplies meanwhile.
  __device__ __forceinline__ void advance(int slot) {
    const int later = threadIdx.x / 128 % 2 * (kFilterSize - kBatches);
    // The first two conditions follow from the third, and leave out while compiling what it never lets in.
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch)
      if (slot >= batch && slot <= batch + kFilterSize - kBatches && slot == batch + later) {
        convert(batch), copy(batch);
        if (batch == kBatches - 1) next_stage(), next_step();
      }
  }

 private:
  static constexpr int kPairs = C::kStagePlanes * C::kPlanePairs;
  static constexpr int kPairBytes = 2 * sizeof(float);  // of a channel
  static constexpr int kBatches = (kPairs + C::kGroupThreads - 1) / C::kGroupThreads;
  static_assert(kBatches < kFilterSize);

  __device__ __forceinline__ bool more() const {
    return unit_ < args_.units;
  }

  __device__ __forceinline__ void copy(int batch) {
    if (more() && is_pair(batch)) {
      if ((step_ + 1) * kStepC <= args_.c) {
#pragma unroll
        for (int c = 0; c < kPlaneChannels; ++c) copy_pair(batch, c, true);
      } else {
        const int live = args_.c - step_ * kStepC - plane(batch) * kPlaneChannels;
#pragma unroll
        for (int c = 0; c < kPlaneChannels; ++c) copy_pair(batch, c, c < live);
      }
    }
    ptx::copy_async_commit();  // without copies too: convert() counts
  }
  __device__ __forceinline__ void copy_pair(int batch, int channel, bool exists) const {
    const float* const source = source_[batch] + channel * args_.plane;
    if constexpr (kEven) {
      ptx::async_copy_or_zero<2>(raw(batch, channel), source, exists);
    } else {
      ptx::async_copy_or_zero<1>(raw(batch, channel), source, exists);
      ptx::async_copy_or_zero<1>(raw(batch, channel) + kPairBytes / 2, source + second_[batch], exists);
    }
  }

  __device__ __forceinline__ void convert(int batch) {
    ptx::copy_async_wait<kBatches - 1>();
    if (!is_pair(batch)) return;
    float values[2][kPlaneChannels];
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c) {
      const float2 pair = ptx::load_shared_float2(raw(batch, c));
      values[0][c] = pair.x, values[1][c] = pair.y;
    }
    uint4 granules[2][1];
    lost_ |= hopper::convert_and_judge(values, granules);
#pragma unroll
    for (int e = 0; e < 2; ++e)
      ptx::store_shared(at_ + (batch * C::kGroupThreads * 2 + e) * kGranuleBytes, granules[e][0]);
  }

  /// All batches are converted: to the other stage.
  __device__ __forceinline__ void next_stage() {
    const bool lost = __any_sync(~0u, lost_);
    lost_ = false;
    if (ptx::thread_index() % 32 == 0 && exists_) *flag_ = lost;
    flag_ += C::kGroupWarps;
    if (step_ == 0)  // of what is converted next
      flag_ += std::int64_t{args_.parts * C::kGroups - 1} * args_.steps * C::kGroupWarps;
    at_ += second_stage_ ? -C::kStageBytes : C::kStageBytes;
    second_stage_ = !second_stage_;
  }

  /// All batches are copied: to the next step.
  __device__ __forceinline__ void next_step() {
    exists_ = more();
    if (!exists_) return;
#pragma unroll
    for (const float*& source : source_) source += kStepC * args_.plane;
    if (++step_ == args_.steps) {
      unit_ += args_.parts;
      open_tile();
    }
  }

  /// Pixels outside of the image: as above.
  __device__ __forceinline__ void open_tile() {
    const TilePlace<C> place(args_, unit_, thread_group<C>());
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      const int pixel = pair_index(batch) % C::kPlanePairs * 2;
      const int row = min(place.first_row + pixel / C::kHaloColumns, args_.h - 1);
      const int column = min(place.first_column + pixel % C::kHaloColumns, args_.w - (kEven ? 2 : 1));
      source_[batch] = args_.x +
                       (std::int64_t{place.image} * args_.c + plane(batch) * kPlaneChannels) * args_.plane +
                       (std::int64_t{row} * args_.w + column);
      if constexpr (!kEven) second_[batch] = column + 1 < args_.w;
    }
    step_ = 0;
  }
  static __device__ __forceinline__ int pair_index(int batch) {
    return batch * C::kGroupThreads + ptx::thread_index() % C::kGroupThreads;
  }
  static __device__ __forceinline__ bool is_pair(int batch) {
    return (batch + 1) * C::kGroupThreads <= kPairs || pair_index(batch) < kPairs;
  }
  static __device__ __forceinline__ int plane(int batch) {
    return min(pair_index(batch) / C::kPlanePairs, C::kStagePlanes - 1);
  }
  __device__ __forceinline__ ptx::SharedAddress raw(int batch, int channel) const {
    return raw_ + (channel * kPairs + batch * C::kGroupThreads) * kPairBytes;
  }

  const Args& args_;
  int unit_, step_;                // what is copied next
  const float* source_[kBatches];  // the step's first channel, of a batch's first pixels
  int second_[kBatches];           // how far on their second pixels are, unless kEven
  std::uint8_t* flag_;             // of what is converted next
  bool exists_ = true;             // whether it does
  ptx::SharedAddress at_, raw_;    // of this thread's first pair
  bool second_stage_ = false, lost_ = false;
};

// --- filter ----------------------------------------------------------------------------------------------

/// The filter's way into shared memory, slot by slot: a tile's slots one after the other, for every tile
/// again.
template <class C, bool kResident>
class FilterFeed;

template <class C>
class FilterFeed<C, true> {
 public:
  template <bool kStaged>
  __device__ FilterFeed(const Args&, const Shared<C, kStaged>& shared, int, int) : slots_(shared.slots) {}

  __device__ __forceinline__ void open_tile() { at_ = slots_; }
  /// Address of the next slot, once it is there.
  __device__ __forceinline__ ptx::SharedAddress acquire() const { return at_; }
  /// The slot of the last acquire() has been read.
  __device__ __forceinline__ void release() { at_ += C::kSlotBytes; }

 private:
  ptx::SharedAddress slots_, at_;
};

/// Each release() also fetches the slot that is half a ring ahead, into the place of the one half a ring
/// back: so far may the groups be apart without waiting for each other.
template <class C>
class FilterFeed<C, false> {
 public:
  __device__ FilterFeed(const Args& args, const Shared<C, false>& shared, int k_tile, int tiles)
      : args_(args), shared_(shared), k_tile_(k_tile), unfetched_tiles_(tiles) {
    for (int i = 0; i < args.slots / 2; ++i) fetch({i, 0});
  }

  __device__ __forceinline__ void open_tile() {}
  __device__ __forceinline__ ptx::SharedAddress acquire() const {
    ptx::mbarrier_poll(shared_.filter_full + cursor_.at * 8, cursor_.parity);
    return shared_.slots + cursor_.at * C::kSlotBytes;
  }
  __device__ __forceinline__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(shared_.filter_empty + cursor_.at * 8);
    RingCursor ahead = cursor_;
    ahead.at += args_.slots / 2;
    if (ahead.at >= args_.slots) ahead.at -= args_.slots, ahead.parity ^= 1;
    fetch(ahead);
    cursor_.advance(args_.slots);
  }

 private:
  __device__ __forceinline__ void fetch(const RingCursor& into) {
    if (unfetched_tiles_ == 0) return;
    const int slots_of_tile = args_.steps * kFilterSize;
    const char* const source = reinterpret_cast<const char*>(args_.filter) +
                               (std::int64_t{k_tile_} * slots_of_tile + next_) * C::kSlotBytes +
                               threadIdx.x * 16;
    ptx::mbarrier_poll(shared_.filter_empty + into.at * 8, into.parity ^ 1);
    const ptx::SharedAddress slot = shared_.slots + into.at * C::kSlotBytes + threadIdx.x * 16;
    constexpr int kRound = C::kThreads * 16;
#pragma unroll
    for (int i = 0; i < C::kSlotBytes; i += kRound)
      if (i + kRound <= C::kSlotBytes || i + static_cast<int>(threadIdx.x) * 16 < C::kSlotBytes)
        ptx::copy_async(slot + i, source + i);
    ptx::async_copy_arrive(shared_.filter_full + into.at * 8);
    if (++next_ == slots_of_tile) next_ = 0, --unfetched_tiles_;
  }

  const Args& args_;
  const Shared<C, false>& shared_;
  RingCursor cursor_;
  int k_tile_, unfetched_tiles_, next_ = 0;
};

// --- multiplication and activation -----------------------------------------------------------------------

/// Of a warp's tile: [term] of high products, and of those with a low term; [16 channels][row][8 columns].
template <class C>
using Sums = float[C::kTerms][C::kFragmentsK][C::kWarpRows][C::kFragmentsQ][4];

/// sums += one slot: 16 input channels, the three taps of a filter column. `pixels`: of the lane's row of the
/// matrices that ldmatrix loads; `filter`: the lane's share of the warp's first fragment.
template <class C>
__device__ __forceinline__ void mma_slot(Sums<C>& sums, ptx::SharedAddress pixels,
                                         ptx::SharedAddress filter) {
  constexpr int kRowBytes = C::kHaloColumns * kGranuleBytes;
#pragma unroll
  for (int r = 0; r < kFilterSize; ++r) {
    std::uint32_t a[C::kTerms][C::kFragmentsK][4];
#pragma unroll
    for (int m = 0; m < C::kFragmentsK; ++m)
#pragma unroll
      for (int term = 0; term < C::kTerms; ++term)
        ptx::load_shared(a[term][m], filter + r * C::kSlotTapBytes + (m * C::kTerms + term) * kFragmentBytes);
#pragma unroll
    for (int pair = 0; pair < C::kWarpRows * C::kFragmentsQ / 2; ++pair) {
      const int row = pair * C::kPairRows / C::kPairsQ, first = pair % C::kPairsQ * 2;
      std::uint32_t b[C::kTerms][4];
#pragma unroll
      for (int term = 0; term < C::kTerms; ++term)
        ptx::ldmatrix_x4(b[term], pixels + term * C::kTermBytes + (row + r) * kRowBytes +
                                      first * kFragmentPixels * kGranuleBytes);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int m = 0; m < C::kFragmentsK; ++m) {
          const int sum_row = C::kPairRows == 1 ? row : row + i, f = C::kPairRows == 1 ? first + i : 0;
          const auto multiply = [&](int into, int filter_term, int x_term) {
            ptx::mma_m16n8k16(sums[into][m][sum_row][f], a[filter_term][m], b[x_term][2 * i],
                              b[x_term][2 * i + 1]);
          };
          multiply(0, 0, 0);
          if constexpr (C::kTerms == 2) multiply(1, 0, 1), multiply(1, 1, 0);
        }
    }
  }
}

/// Tensor cores cut off what their sums lose, so that long sums drift. With two terms, where that counts,
/// they are added up in memory every kPromotionSteps steps, by ordinary additions.
inline constexpr int kPromotionSteps = 4;

/// total += sums, or = sums. `total`: kThreads of a thread's share of 16 bytes, for each fragment.
template <class C>
__device__ __forceinline__ void promote(Sums<C>& sums, float4* total, bool first) {
  total += ptx::thread_index();
#pragma unroll
  for (int m = 0; m < C::kFragmentsK; ++m)
#pragma unroll
    for (int row = 0; row < C::kWarpRows; ++row)
#pragma unroll
      for (int f = 0; f < C::kFragmentsQ; ++f, total += C::kThreads) {
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          v[i] = __fmaf_rn(sums[1][m][row][f][i], hopper::kLowScale, sums[0][m][row][f][i]);
          sums[0][m][row][f][i] = sums[1][m][row][f][i] = 0;
        }
        float4 sum = first ? float4{} : *total;
        sum.x += v[0], sum.y += v[1], sum.z += v[2], sum.w += v[3];
        *total = sum;
      }
}

template <class C>
__device__ __forceinline__ void add_promoted(Sums<C>& sums, const float4* total) {
  total += ptx::thread_index();
#pragma unroll
  for (int m = 0; m < C::kFragmentsK; ++m)
#pragma unroll
    for (int row = 0; row < C::kWarpRows; ++row)
#pragma unroll
      for (int f = 0; f < C::kFragmentsQ; ++f, total += C::kThreads) {
        const float4 sum = *total;
        float* const v = sums[0][m][row][f];
        v[0] += sum.x, v[1] += sum.y, v[2] += sum.z, v[3] += sum.w;
      }
}

/// Which of its tile's outputs a warp computes, in output channels and pixels.
template <class C>
struct WarpPlace {
  int first_k, first_row, first_column;

  __device__ explicit WarpPlace(int warp) {
    first_k = warp % C::kWarpsK * C::kWarpK;
    first_row = warp / C::kWarpsK % C::kWarpsBelow * C::kWarpRows;
    first_column = warp / (C::kWarpsK * C::kWarpsBelow) * C::kWarpColumns;
  }
};

/// What a lane of a warp loads: `pixels` from the start of a stage, of its row of the matrices that it gives
/// ldmatrix the addresses of; `fragments` from the start of a slot, of its share of the warp's first
/// fragment. See mma_slot.
template <class C>
struct LanePlace {
  int pixels, fragments;

  __device__ __forceinline__ LanePlace(const WarpPlace<C>& warp, int lane) {
    constexpr int kSecond = C::kPairRows == 1 ? kFragmentPixels : C::kHaloColumns;
    pixels = lane / 8 % 2 * C::kPlaneBytes +
             (warp.first_row * C::kHaloColumns + warp.first_column + lane % 8 + lane / 16 * kSecond) *
                 kGranuleBytes;
    fragments = warp.first_k / kFragmentK * C::kTerms * kFragmentBytes + lane * (kFragmentBytes / 32);
  }
};

/// The groups take turns: whoever waits goes on when the other has passed the turn.
template <class C>
struct Turns {
  static constexpr int kFirstBarrier = 1 + C::kGroups;  // behind those of the groups
  static_assert(C::kGroups == 2);

  static __device__ __forceinline__ void wait() {
    ptx::named_barrier_sync(kFirstBarrier + thread_group<C>(), C::kThreads);
  }
  static __device__ __forceinline__ void pass() {
    ptx::named_barrier_arrive(kFirstBarrier + 1 - thread_group<C>(), C::kThreads);
  }
};

/// Bias, Mish, Mish: of one row of a warp's outputs, one output channel a lane; see Sums.
template <class C>
__device__ __forceinline__ void activate(float (&v)[2 * C::kFragmentsQ], const Sums<C>& sums, int m, int row,
                                         int half, const ChannelAffine& affine) {
#pragma unroll
  for (int f = 0; f < C::kFragmentsQ; ++f)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float sum = sums[0][m][row][f][2 * half + e];
      if constexpr (C::kTerms == 2) sum = __fmaf_rn(sums[1][m][row][f][2 * half + e], hopper::kLowScale, sum);
      v[2 * f + e] = __fmaf_rn(sum, affine.scale, affine.bias);
    }
  hopper::mish_of_mish_of_ln2(v);
}

/// How outputs of one row, 8 channels of a warp's, come from the lanes that computed them to lanes that store
/// neighbours: a lane has pairs of pixels all over a channel's row. The L2 gets a request for each line of
/// 128 bytes that a warp's store touches, so that there are fewer.
///
/// Called with a channel's row, lane / 4 of the 8, [fragment][2 pixels]; leaves pair i of channel
/// channel + i kStep, the lane's `pixel` and the next.
///
/// Where x is staged through shared memory, which is for one group at a time: they take turns at their
/// epilogues. That takes fewer instructions, but longer: elsewhere shuffles were measured to be faster.
template <class C, bool kThroughShared>
class RowExchange {
 public:
  static constexpr int kBytes = 0, kStep = 1;
  int channel, pixel;

  __device__ __forceinline__ RowExchange(int thread)
      : channel(thread % 32 / 4 / kCount * kCount),
        pixel(thread % 32 / 4 % kCount * kFragmentPixels + 2 * (thread % 4)),
        row_(thread % 32 / 4) {}

  __device__ __forceinline__ void operator()(float (&v)[2 * C::kFragmentsQ]) const {
#pragma unroll
    for (int bit = 1; bit < kCount; bit *= 2) {
      const bool high = row_ & bit;
#pragma unroll
      for (int i = 0; i < 2 * kCount; ++i)
        if (!(i / 2 & bit)) {
          float &low_value = v[i], &high_value = v[i + 2 * bit];
          const float other = __shfl_xor_sync(~0u, high ? low_value : high_value, 4 * bit);
          (high ? low_value : high_value) = other;
        }
    }
  }

 private:
  static constexpr int kCount = C::kFragmentsQ;
  int row_;
};

template <class C>
class RowExchange<C, true> {
  static constexpr int kPairBytes = 2 * sizeof(float);
  static constexpr int kRowBytes =
      (C::kWarpColumns + 8) * sizeof(float);  // then no access has bank conflicts
  static constexpr int kWarpBytes = 8 * kRowBytes;

 public:
  static constexpr int kBytes = C::kGroupWarps * kWarpBytes, kStep = 64 / C::kWarpColumns;
  int channel, pixel;

  __device__ __forceinline__ RowExchange(int thread)
      : channel(2 * (thread % 32) / C::kWarpColumns), pixel(2 * (thread % 32) % C::kWarpColumns) {
    extern __shared__ __align__(128) unsigned char memory[];
    const ptx::SharedAddress rows = ptx::shared_address(memory) + StageRing<C, true>::kAllBytes +
                                    thread / 32 % C::kGroupWarps * kWarpBytes;
    from_ = rows + thread % 32 / 4 * kRowBytes + thread % 4 * kPairBytes;
    to_ = rows + channel * kRowBytes + pixel / 2 * kPairBytes;
  }

  __device__ __forceinline__ void operator()(float (&v)[2 * C::kFragmentsQ]) const {
    __syncwarp();  // the row before has been read
#pragma unroll
    for (int f = 0; f < C::kFragmentsQ; ++f)
      ptx::store_shared(from_ + f * kFragmentPixels / 2 * kPairBytes, make_float2(v[2 * f], v[2 * f + 1]));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < C::kFragmentsQ; ++i) {
      const float2 pair = ptx::load_shared_float2(to_ + i * kStep * kRowBytes);
      v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
    }
  }

 private:
  ptx::SharedAddress from_, to_;  // of the first of a lane's pairs
};

/// The way to y. kEven: rows have an even number of outputs, so that a lane can store two as one vector.
/// `between(part)` is called before each row of a channel.
template <class C, bool kStaged, bool kEven, class Between>
__device__ __forceinline__ void store_rows(const Args& args, const Sums<C>& sums, int unit, int k_tile,
                                           Between&& between) {
  // Read anew, so that what follows from it takes no registers during the multiplications.
  const int thread = ptx::thread_index();
  const WarpPlace<C> warp(thread / 32 % C::kGroupWarps);
  const TilePlace<C> place(args, unit, thread / C::kGroupThreads);
  const int first_k = k_tile * C::kTileK + warp.first_k, first_row = place.first_row + warp.first_row;
  const std::int64_t plane = std::int64_t{args.p} * args.q;

  const auto affine_of = [&](int m, int half) {
    return args.affine[first_k + m * kFragmentK + half * 8 + thread % 32 / 4];
  };
  ChannelAffine early[C::kFragmentsK][2];  // for what has to be waited for to be short
  if constexpr (kStaged) {
#pragma unroll
    for (int m = 0; m < C::kFragmentsK; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) early[m][half] = affine_of(m, half);
    Turns<C>::wait();
  }
  const Exchange<C, kStaged> exchange(thread);
  const int column = place.first_column + warp.first_column + exchange.pixel;
#pragma unroll
  for (int m = 0; m < C::kFragmentsK; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const ChannelAffine affine = kStaged ? early[m][half] : affine_of(m, half);
      const int k = first_k + m * kFragmentK + half * 8 + exchange.channel;
      float* const first = args.y + (std::int64_t{place.image} * args.k + k) * plane +
                           std::int64_t{first_row} * args.q + column;
#pragma unroll
      for (int row = 0; row < C::kWarpRows; ++row) {
        between((m * 2 + half) * C::kWarpRows + row);
        float v[2 * C::kFragmentsQ];
        activate<C>(v, sums, m, row, half, affine);
        exchange(v);
        float* out = first + std::int64_t{row} * args.q;
#pragma unroll
        for (int i = 0; i < C::kFragmentsQ; ++i, out += Exchange<C, kStaged>::kStep * plane) {
          const bool live = k + i * Exchange<C, kStaged>::kStep < args.k && first_row + row < args.p;
          if constexpr (kEven) {
            if (live && column < args.q) ptx::store_global_kept(out, make_float2(v[2 * i], v[2 * i + 1]));
          } else {
#pragma unroll
            for (int e = 0; e < 2; ++e)
              if (live && column + e < args.q) ptx::store_global_kept(out + e, v[2 * i + e]);
          }
        }
      }
    }
}

template <class C, bool kResident, bool kStaged, bool kEven>
__device__ __forceinline__ void compute(const Args& args, const Shared<C, kStaged>& shared, int part,
                                        int k_tile, int group) {
  const LanePlace<C> lane(WarpPlace<C>(threadIdx.x / 32 % C::kGroupWarps), threadIdx.x % 32);
  const ptx::SharedAddress pixels = shared.stages + lane.pixels, fragments = lane.fragments;

  const int tiles = (args.units - part + args.parts - 1) / args.parts;
  FilterFeed<C, kResident> feed(args, shared, k_tile, tiles);
  InputFeed<C, kStaged, kEven> input(args, shared.stages, shared.raw, part, group);
  input.start();
  const auto group_barrier = [&] {
    ptx::named_barrier_sync(1 + (kStaged ? thread_group<C>() : group), C::kGroupThreads);
  };
  group_barrier();

  if (kStaged && group == 1) Turns<C>::pass();  // group 0 begins

  float4* const promoted = args.promoted + std::int64_t{blockIdx.x} * promoted_vectors<C>();
  int stage = 0;
#pragma unroll 1
  for (int unit = part; unit < args.units; unit += args.parts) {
    Sums<C> sums = {};
    feed.open_tile();
#pragma unroll 1
    for (int step = 0; step < args.steps; ++step) {
      if (C::kTerms == 2 && step > 0 && step % kPromotionSteps == 0)
        promote<C>(sums, promoted, step == kPromotionSteps);
      const ptx::SharedAddress first = pixels + stage * C::kStageBytes;
#pragma unroll
      for (int s = 0; s < kFilterSize; ++s) {
        const ptx::SharedAddress slot = feed.acquire() + fragments;
        input.advance(s);
        mma_slot<C>(sums, first + s * kGranuleBytes, slot);
        feed.release();
      }
      group_barrier();
      if (++stage == StageRing<C, kStaged>::kStages) stage = 0;
    }
    if (C::kTerms == 2 && args.steps > kPromotionSteps) add_promoted<C>(sums, promoted);
    store_rows<C, kStaged, kEven>(args, sums, unit, k_tile, [](int) {});
    // A turn that nobody waits for any more is not passed.
    if (kStaged && (thread_group<C>() == 0 || unit + args.parts < args.units)) Turns<C>::pass();
  }
}

/// All slots of a block of output channels, by all threads of the thread block.
template <class C>
__device__ __forceinline__ void load_filter(const Args& args, ptx::SharedAddress slots, int k_tile) {
  const int bytes = args.steps * kFilterSize * C::kSlotBytes;
  const char* const source = reinterpret_cast<const char*>(args.filter) + std::int64_t{k_tile} * bytes;
  for (int i = threadIdx.x * 16; i < bytes; i += C::kThreads * 16) ptx::copy_async(slots + i, source + i);
  ptx::copy_async_wait_all();
}

template <class C, bool kResident, bool kStaged, bool kEven>
__global__ void __launch_bounds__(C::kThreads, 1) kernel(const __grid_constant__ Args args) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int k_tile = blockIdx.x % args.k_tiles, part = blockIdx.x / args.k_tiles;
  const int group = threadIdx.x / C::kGroupThreads;
  const Shared<C, kStaged> shared(args, memory, group);
  if (kResident) {
    load_filter<C>(args, shared.slots, k_tile);
  } else if (threadIdx.x == 0) {
    for (int i = 0; i < args.slots; ++i) {
      ptx::mbarrier_init(shared.filter_full + i * 8, C::kThreads);
      ptx::mbarrier_init(shared.filter_empty + i * 8, C::kGroups * C::kGroupWarps);
    }
  }
  __syncthreads();
  compute<C, kResident, kStaged, kEven>(args, shared, part, k_tile, group);
#endif
}

}  // namespace convmish::mma
