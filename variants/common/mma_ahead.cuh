// The kernel of mma_fused.cuh where x is packed ahead: a group converts the whole input of its next tile
// between the parts of its epilogue, and takes turns at the multiplications with the other group, so that
// nothing but they and their loads of fragments are in a turn.
//
// For two terms: one term converts faster in between the multiplications (results/h200/mma.md). Where the
// filter is resident, and beside it there are stages for one and a half tiles at least. All stages are one
// ring, from which both groups take those of their tiles, in the order of their turns.
//
// Who waits for whom:
//   turn (named)               a group before its multiplications, for the other to have done its own
//   a stage's empty (mbarrier) who converts into it, for all warps that multiplied with what it held
#pragma once

#include "variants/common/mma_fused.cuh"

namespace convmish::mma {

/// The stages, in shared memory, each with its mbarrier behind it. A position counts two passes through them,
/// for the parity.
template <class C>
struct StageCircle {
  static constexpr int kStride = C::kStageBytes + 16;
  ptx::SharedAddress stages;
  int depth;

  __device__ __forceinline__ int later(int position, int count) const {
    position += count;
    return position < 2 * depth ? position : position - 2 * depth;
  }
  __device__ __forceinline__ ptx::SharedAddress stage(int position) const {
    return stages + (position < depth ? position : position - depth) * kStride;
  }
  __device__ __forceinline__ ptx::SharedAddress stage_after(ptx::SharedAddress stage) const {
    return stage + kStride == stages + depth * kStride ? stages : stage + kStride;
  }
  static __device__ __forceinline__ ptx::SharedAddress empty(ptx::SharedAddress stage) {
    return stage + C::kStageBytes;
  }
  /// Whether so many stages are enough for tiles of `steps`. A stage's barrier tells one pass through the
  /// circle from the next only. Who packs a tile knows that all tiles before its group's last one have been
  /// read, by all warps: what the stage held two passes before has to be of those. tests/gpu has a model.
  static constexpr bool suffices(std::int64_t stages, std::int64_t steps) { return 3 * steps <= 2 * stages; }

  /// Of the pass before the one that `position` is in.
  __device__ __forceinline__ std::uint32_t parity_before(int position) const { return position < depth; }
};

/// Bytes of shared memory: the stages, then the filter.
template <class C>
constexpr std::int64_t shared_bytes_ahead(std::int64_t stages, std::int64_t slots) {
  return stages * StageCircle<C>::kStride + slots * C::kSlotBytes;
}

/// What the range guard's flags mean: one for each 32 pairs of a tile, which may begin a plane.
template <class C>
struct UnitsAhead {
  Units<C> tiles;

  CONVMISH_HD static int flags(const Args& args) {
    return (args.steps * C::kStagePlanes * C::kPlanePairs + 31) / 32;
  }
  CONVMISH_HD std::int64_t count() const { return tiles.count(); }
  CONVMISH_HD int flag_count() const { return flags(tiles.args); }
  __device__ hopper::OutputUnit unit(std::int64_t i) const {
    hopper::OutputUnit unit = tiles.unit(i);
    unit.flags = tiles.args.raised + i * flag_count();
    return unit;
  }
  __device__ hopper::Granule granule(int flag) const {
    static_assert(C::kPlanePairs >= 32);
    return {.first_row = 0,
            .rows = C::kHaloRows,
            .first_channel = flag * 32 / C::kPlanePairs * kPlaneChannels,
            .channels = 2 * kPlaneChannels};
  }
};

/// A thread's share of a tile's whole input, converted into the stages from position `first` on: pairs of
/// neighbouring pixels, 8 channels of each. kEven: rows of x have an even number of pixels.
template <class C, bool kEven>
class TilePacker {
 public:
  using Values = float[2][kPlaneChannels];

  __device__ __forceinline__ TilePacker(const Args& args, const StageCircle<C>& circle, int unit, bool exists,
                                        int first)
      : args_(args),
        circle_(circle),
        unit_(unit),
        first_(first),
        pairs_(exists ? args.steps * C::kStagePlanes * C::kPlanePairs : 0) {
    const TilePlace<C> place(args, unit, thread_group<C>());
    first_row_ = place.first_row, first_column_ = place.first_column;
    image_ = args.x + std::int64_t{place.image} * args.c * args.plane;
  }

  /// Pixels outside of the image are read at its edge: only outputs that do not exist see them.
  __device__ __forceinline__ void load(Values& values, int i) const {
    // Undefined where there is no pair, they would take registers from one tile to the next.
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c) values[0][c] = values[1][c] = 0;
    if (pair(i) >= pairs_) return;
    const int in_plane = pair(i) % C::kPlanePairs, channel = pair(i) / C::kPlanePairs * kPlaneChannels;
    const int row = min(first_row_ + in_plane / kRowPairs, args_.h - 1);
    const int column = first_column_ + in_plane % kRowPairs * 2;
    const float* source = image_ + channel * args_.plane + std::int64_t{row} * args_.w;
    source += min(column, args_.w - (kEven ? 2 : 1));
    const int second = column + 1 < args_.w;
    const int live = args_.c - channel;
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c, source += args_.plane)
      if (c < live) {
        if constexpr (kEven) {
          const float2 v = __ldg(reinterpret_cast<const float2*>(source));
          values[0][c] = v.x, values[1][c] = v.y;
        } else {
          values[0][c] = __ldg(source), values[1][c] = __ldg(source + second);
        }
      }
  }

  __device__ __forceinline__ void store(const Values& values, int i) const {
    if (pair(i) - ptx::thread_index() % 32 >= pairs_) return;
    bool raised = false;
    if (pair(i) < pairs_) {
      uint4 converted[2][C::kTerms];
      raised = hopper::convert_and_judge(values, converted);
      const int plane = pair(i) / C::kPlanePairs, position = circle_.later(first_, plane / C::kStagePlanes);
      const ptx::SharedAddress stage = circle_.stage(position);
      ptx::mbarrier_poll(circle_.empty(stage), circle_.parity_before(position));
      const ptx::SharedAddress at =
          stage + plane % C::kStagePlanes * C::kPlaneBytes + pair(i) % C::kPlanePairs * (2 * kGranuleBytes);
#pragma unroll
      for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int term = 0; term < C::kTerms; ++term)
          ptx::store_shared(at + term * C::kTermBytes + e * kGranuleBytes, converted[e][term]);
    }
    raised = __any_sync(~0u, raised);
    if (ptx::thread_index() % 32 == 0)
      args_.raised[(std::int64_t{unit_} * C::kGroups + thread_group<C>()) * UnitsAhead<C>::flags(args_) +
                   pair(i) / 32] = raised;
  }

  /// From the i-th on.
  __device__ __forceinline__ void pack(int i) const {
    constexpr int kBatch = 2;
#pragma unroll 1
    for (; pair(i) - ptx::thread_index() % 32 < pairs_; i += kBatch) {
      Values values[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) load(values[j], i + j);
#pragma unroll
      for (int j = 0; j < kBatch; ++j) store(values[j], i + j);
    }
  }

 private:
  static constexpr int kRowPairs = C::kHaloColumns / 2;

  static __device__ __forceinline__ int pair(int i) {
    return ptx::thread_index() % C::kGroupThreads + i * C::kGroupThreads;
  }

  const Args& args_;
  const StageCircle<C>& circle_;
  int unit_, first_, first_row_, first_column_;
  int pairs_;  // of all threads
  const float* image_;
};

template <class C, bool kEven>
__device__ __forceinline__ void compute_ahead(const Args& args, ptx::SharedAddress stages,
                                              ptx::SharedAddress slots, int part, int k_tile) {
  const StageCircle<C> circle{stages, args.stages};
  int first = thread_group<C>() == 0 ? 0 : circle.later(0, args.steps);
  // Group 0 begins. Group 1 says so before it packs: it may have to wait for stages that group 0 has used.
  if (thread_group<C>() == 1) Turns<C>::pass();
  TilePacker<C, kEven>(args, circle, part, true, first).pack(0);
#pragma unroll 1
  for (int unit = part; unit < args.units; unit += args.parts) {
    Turns<C>::wait();
    Sums<C> sums = {};
    const int lane_index = ptx::thread_index() % 32;
    const LanePlace<C> lane(WarpPlace<C>(ptx::thread_index() / 32 % C::kGroupWarps), lane_index);
    ptx::SharedAddress slot = slots + lane.fragments, stage = circle.stage(first);
    int steps = args.steps;
    do {  // for ptxas to know that it is done once: it would make another epilogue for sums of 0
#pragma unroll
      for (int s = 0; s < kFilterSize; ++s, slot += C::kSlotBytes)
        mma_slot<C>(sums, stage + lane.pixels + s * kGranuleBytes, slot);
      __syncwarp();
      if (ptx::thread_index() % 32 == 0) ptx::mbarrier_arrive(circle.empty(stage));
      stage = circle.stage_after(stage);
    } while (--steps > 0);
    Turns<C>::pass();

    const int next = unit + args.parts;
    first = circle.later(circle.later(first, args.steps), args.steps);  // beyond those of the other group
    const TilePacker<C, kEven> packer(args, circle, next, next < args.units, first);
    // A pair is loaded before a quarter of the epilogue and converted after it; the first part leaves no
    // registers for one.
    typename TilePacker<C, kEven>::Values values;
    constexpr int kParts = 2 * C::kFragmentsK * C::kWarpRows, kEvery = kParts / 4;
    store_rows<C, false, kEven>(args, sums, unit, k_tile, [&](int part) {
      if (part < 1 || (part - 1) % kEvery != 0) return;
      const int item = (part - 1) / kEvery;
      if (item > 0) packer.store(values, item - 1);
      packer.load(values, item);
    });
    packer.store(values, 3);
    if (next < args.units) packer.pack(4);
  }
  if (thread_group<C>() == 0) Turns<C>::wait();  // for the turn that would be passed to nobody
}

template <class C, bool kEven>
__global__ void __launch_bounds__(C::kThreads, 1) kernel_ahead(const __grid_constant__ Args args) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int k_tile = blockIdx.x % args.k_tiles, part = blockIdx.x / args.k_tiles;
  const StageCircle<C> circle{ptx::shared_address(memory), args.stages};
  const ptx::SharedAddress slots = circle.stages + args.stages * StageCircle<C>::kStride;
  load_filter<C>(args, slots, k_tile);
  if (threadIdx.x == 0)
    for (int i = 0; i < args.stages; ++i)
      ptx::mbarrier_init(circle.empty(circle.stages + i * StageCircle<C>::kStride), C::kGroupWarps);
  __syncthreads();
  compute_ahead<C, kEven>(args, circle.stages, slots, part, k_tile);
#endif
}

}  // namespace convmish::mma
