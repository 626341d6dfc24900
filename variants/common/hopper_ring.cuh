// What the fused convolutions that keep their input in a ring share (hopper_row_ring.cuh,
// hopper_pixel_ring.cuh): a cluster of two thread blocks, each of 64 of its output channels (128, or in the
// ring of pixels 64, the same), a producer warpgroup that converts one half of the input channels for both,
// and consumers that multiply in turn.
#pragma once

#include "variants/common/hopper_operands.cuh"

namespace convmish::hopper::ring {

inline constexpr int kClusterBlocks = 2;
inline constexpr int kClusterK = kClusterBlocks * kBlockK;
inline constexpr int kWarpsPerGroup = 4;
inline constexpr int kConsumers = 4, kThreads = 128 * (1 + kConsumers);
inline constexpr int kPlanesPerBlock = kPlanes / kClusterBlocks;
static_assert(kPlanesPerBlock == kWarpsPerGroup, "one producer warp a plane");
inline constexpr int kPiecePixels = 64;  // what a producer warp brings at a time, of its plane
inline constexpr int kStages = 3;        // pieces on their way to a producer warp
inline constexpr int kStageBytes = kPlaneChannels * kPiecePixels * sizeof(float);
// Of a consumer's registers, 64 are for its sums.
inline constexpr int kProducerRegisters = 64, kConsumerRegisters = 104;
static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * 128 <= kThreads * 96,
              "setmaxnreg hands out what the launch allots: 65536 / 640 threads, rounded down to 8");

/// A piece's way from its stage to the ring, a lane two neighbouring pixels.
class Piece {
 public:
  /// `stage`: of [channel][pixel] floats.
  __device__ __forceinline__ void load(ptx::SharedAddress stage, int lane) {
#pragma unroll
    for (int c = 0; c < kPlaneChannels; ++c) {
      const float2 pair =
          ptx::load_shared_float2(stage + (c * kPiecePixels + kLanePixels * lane) * sizeof(float));
      values_[0][c] = pair.x, values_[1][c] = pair.y;
    }
  }

  /// Whether lost_bits() may be true of any lane. By a whole warp; then every lane has read the stage, since
  /// each lane's vote hangs on all that it loaded.
  __device__ __forceinline__ bool convert() {
    GranuleGuard guard;
#pragma unroll
    for (int i = 0; i < kLanePixels; ++i) {
      uint4 granule[1];
      convert_granule(values_[i], granule);
      guard.see(granule[0]);
      granules_[i] = granule[0];
    }
    return __any_sync(~0u, guard.suspects());
  }

  /// `first`: of the piece's granules in the ring.
  __device__ __forceinline__ void store(ptx::SharedAddress first, int lane) const {
#pragma unroll
    for (int i = 0; i < kLanePixels; ++i)
      ptx::store_shared(first + (kLanePixels * lane + i) * kGranuleBytes, granules_[i]);
  }

  /// Whether rounding has cost a value of this lane's more than its share.
  __device__ __forceinline__ bool lost_bits() const {
    return loses_bits<1>(values_[0]) || loses_bits<1>(values_[1]);
  }

 private:
  static constexpr int kLanePixels = kPiecePixels / 32;
  static_assert(kLanePixels == 2);
  float values_[kLanePixels][kPlaneChannels];
  uint4 granules_[kLanePixels];
};

/// Sends for a thread block's filter. By one thread; `full` counts one arrival.
__device__ __forceinline__ void load_filter(__half (&filter)[kTaps][kBlockK][kBlockC], const uint4* repacked,
                                            int k_block, ptx::SharedAddress full) {
  constexpr int kTapVectors = kTapBytes / sizeof(uint4);
  const uint4* const source = repacked + std::int64_t{k_block} * (kTaps * kTapVectors);
  ptx::mbarrier_arrive_expect_tx(full, sizeof(filter));
#pragma unroll 1
  for (int tap = 0; tap < kTaps; ++tap)
    ptx::bulk_copy_from_global(ptx::shared_address(filter[tap]), source + tap * kTapVectors, kTapBytes, full);
}

inline constexpr int kTurnBarrier = 1;  // named barriers, one a consumer; 0 is __syncthreads

/// Consumer i multiplies when consumer i - 1 has issued nearly all its wgmma.
__device__ __forceinline__ void wait_for_turn(int consumer) {
  ptx::named_barrier_sync(kTurnBarrier + consumer, 2 * 128);
}
__device__ __forceinline__ void pass_turn(int consumer) {
  ptx::named_barrier_arrive(kTurnBarrier + (consumer + 1) % kConsumers, 2 * 128);
}

/// A producer warp has filled its plane of a slot; by one lane. Warp 0 also tells what the peer's warps copy
/// to here, `bytes` each.
__device__ __forceinline__ void arrive_full(ptx::SharedAddress full, int warp, std::uint32_t bytes) {
  if (warp == 0)
    ptx::mbarrier_arrive_expect_tx(full, kPlanesPerBlock * bytes);
  else
    ptx::mbarrier_arrive(full);
}

/// sums += the three taps of filter row r. Before the last one of all it passes the turn, so that the tensor
/// cores never run dry.
__device__ __forceinline__ void mma_filter_row(Accumulator& sums,
                                               const __half (&filter)[kTaps][kBlockK][kBlockC],
                                               std::uint64_t pixels, std::uint32_t plane_bytes, int r,
                                               int consumer) {
  const std::uint64_t taps = filter_descriptor(ptx::shared_address(filter[r * kFilterSize]));
  ptx::wgmma_fence();
#pragma unroll
  for (int s = 0; s < kFilterSize; ++s) {
    if (r == kFilterSize - 1 && s == kFilterSize - 1) pass_turn(consumer);
    mma_tap(sums, taps + ptx::descriptor_step(s * kTapBytes),
            pixels + ptx::descriptor_step(s * kGranuleBytes), plane_bytes, r == 0 && s == 0);
  }
  ptx::wgmma_commit_group();
}

/// The range guard's flags of all planes, of a row or a chunk.
using PlaneFlags = unsigned long long;
static_assert(kPlanes == sizeof(PlaneFlags));

/// For a warp: whether any of so many is raised.
__device__ __forceinline__ bool any_flagged(const PlaneFlags* flags, int count) {
  bool any = false;
  // From the L2: the L1 may still have those of a launch before.
  for (int i = threadIdx.x % 32; i < count; i += 32) any |= __ldcg(flags + i) != 0;
  return __any_sync(~0u, any);
}

}  // namespace convmish::hopper::ring
