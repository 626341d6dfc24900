// The fused convolution for few input channels (c <= 64) and images of even, narrow rows: filter resident,
// input pixels in a ring.
//
// Pixels of an image are counted through its rows, and outputs as the first pixels of their windows. A tile
// is 64 output channels x 128 pixels; filter tap (r, s) multiplies the same pixels, r w + s on, read from a
// shifted start. What a tile has of the last two columns of rows is computed and not stored. As in
// hopper_row_ring.cuh, a cluster of two thread blocks computes 128 output channels, each block 64, and each
// converts half of the input channels for both. Where there are no more than 64 output channels, both blocks
// compute those, and take tiles by turns. A cluster's tiles are consecutive.
//
//   producer, 1 warpgroup    chunks of 128 pixels: global fp32 -> (tensor copy) stage -> registers -> fp16 ->
//                            ring, here and (bulk copy) in the peer
//   consumers, 4 warpgroups  tiles in turn: wgmma over the 9 taps, bias, Mish, Mish, store; at last, what the
//                            range guard flagged again in fp32 (hopper_recompute.cuh)
//
// Who waits for whom:
//   filter_full        consumers wait, once
//   stage_full[warp]   a producer warp waits for the piece of a chunk that it has sent for
//   chunk_full[slot]   consumers wait; completed by the 4 producer warps and the bytes of the peer's copies
//   chunk_empty[slot]  producers wait; completed by the consumers' warps for each tile that reads the chunk,
//                      in both blocks, for both write there; see also tell_that_chunk_came()
//   turn (named)       consumer i waits for consumer i - 1 to have issued nearly all its wgmma
//
// The L2 takes as long for a part of a 32-byte sector of y as for a whole one, and rows of y begin anywhere
// in a sector. So a warp's outputs are exchanged in shared memory and stored in runs of 64 pixels of a
// channel, which is 9 sectors where the fragments of wgmma would make 16.
#pragma once

#include "variants/common/fast_divider.hpp"
#include "variants/common/hopper_mish.cuh"
#include "variants/common/hopper_operands.cuh"
#include "variants/common/hopper_recompute.cuh"
#include "variants/common/hopper_ring.cuh"
#include "variants/common/tensor_map.hpp"

namespace convmish::hopper::pixel_ring {

using namespace ring;

inline constexpr int kMostChunks = 4;                             // that a tile's pixels may lie in
inline constexpr int kSlots = kMostChunks + 1;                    // one more is being filled
inline constexpr int kPieces = kBlockPixels / kPiecePixels;       // of a chunk
inline constexpr int kChunkBytes = kBlockPixels * kGranuleBytes;  // of a plane
inline constexpr int kPlaneBytes = (kSlots + 1) * kChunkBytes;
inline constexpr int kLargestWidth = (kMostChunks - 1) * kBlockPixels / (kFilterSize - 1) - 1;
inline constexpr int kRunPixels = 64;  // of an exchange, and so of a store
inline constexpr int kRunBytes = kRunPixels * sizeof(float);

/// Chunks that a tile reads beyond the one that it begins.
constexpr int halo(int w) {
  return ((kFilterSize - 1) * (w + 1) + kBlockPixels - 1) / kBlockPixels;
}
static_assert(halo(kLargestWidth) == kMostChunks - 1);

/// The kernel's arguments and the one place where it is decided who computes what.
struct Args {
  RecomputeArgs again;
  const uint4* filter;          // repacked
  const ChannelAffine* affine;  // by output channel, padded to kClusterK
  std::uint8_t* raised;         // [image][chunk][plane]: the range guard's flags
  int n, c, h, w, k, p, q;
  int tiles;       // of an image; each begins with a chunk
  int halo;        // chunks that a tile reads beyond that; and those of an image beyond its tiles'
  int k_clusters;  // clusters needed for all output channels
  int parts;       // runs of tiles that the batch is divided in
  FastDividerOf<int> by_w{1}, by_tiles{1};
  CUtensorMap map;  // of x: boxes of kPiecePixels of kPlaneChannels

  CONVMISH_HD std::int64_t total_tiles() const { return std::int64_t{n} * tiles; }
  CONVMISH_HD int chunks() const { return tiles + halo; }
  /// The chunk that a tile begins, both counted through the batch.
  __device__ int chunk_of(int tile) const { return tile + by_tiles.divide(tile).quotient * halo; }

  /// To be called when x is known.
  void map_x() { map = tensor_map(again.x, {h * w, 1, c, n}, {kPiecePixels, 1, kPlaneChannels, 1}); }
};

/// How a cluster shares its work out: blocks of output channels that it computes; with one, its thread blocks
/// take tiles by turns, and both have every chunk in their rings none the less.
template <int kBlocksOfK_>
struct Sharing {
  static constexpr int kBlocksOfK = kBlocksOfK_, kTileStep = kClusterBlocks / kBlocksOfK;

  /// Of a cluster's tiles, the first that is this thread block's; from there every kTileStep-th.
  static __device__ int first_tile(int rank) { return rank % kTileStep; }
  static __device__ int k_block(int k_cluster, int rank) {
    return k_cluster * kBlocksOfK + rank % kBlocksOfK;
  }
};

/// What a cluster computes, and what it reads for that: tiles and chunks, counted through the batch. Its
/// chunks are consecutive, for where its next tile is of another image, it reads the one before to its end.
struct Part {
  int first_tile, end_tile, first_chunk, end_chunk;

  __device__ Part(const Args& args, int part)
      : first_tile(static_cast<int>(args.total_tiles() * part / args.parts)),
        end_tile(static_cast<int>(args.total_tiles() * (part + 1) / args.parts)),
        first_chunk(args.chunk_of(first_tile)),
        end_chunk(args.chunk_of(end_tile - 1) + 1 + args.halo) {}
};

struct SharedStorage {
  alignas(1024) __half filter[kTaps][kBlockK][kBlockC];
  // Behind the last slot the first one's chunk is repeated, for filter rows whose pixels begin in the one and
  // end in the other. Two chunks hold those, since rows are even and so begin at an even pixel.
  alignas(128) __half ring[kPlanes][kSlots + 1][kBlockPixels][kPlaneChannels];
  alignas(128) float stage[kWarpsPerGroup][kStages][kPlaneChannels][kPiecePixels];
  alignas(kRunBytes) float exchange[kConsumers][kWarpsPerGroup][8][kRunPixels];
  std::uint64_t filter_full;
  std::uint64_t chunk_full[kSlots];
  std::uint64_t chunk_empty[kSlots];
  std::uint64_t stage_full[kWarpsPerGroup][kStages];
};
static_assert(sizeof(SharedStorage) <= 232448, "232448 B: sm_90 opt-in limit");
static_assert(sizeof(SharedStorage::ring) == kPlanes * kPlaneBytes);

// --- producer --------------------------------------------------------------------------------------------

/// A producer warp's way through the pieces of its plane, from x to its stages: sent for one after the other.
class PieceFeed {
 public:
  __device__ __forceinline__ PieceFeed(const Args& args, SharedStorage& shared, int first_chunk, int plane,
                                       int warp)
      : args_(args),
        stages_(ptx::shared_address(shared.stage[warp])),
        full_(ptx::shared_address(shared.stage_full[warp])),
        channel_(plane * kPlaneChannels),
        image_(first_chunk / args.chunks()),
        chunk_(first_chunk % args.chunks()) {}

  /// Sends for the next piece, which is number `piece` of its chunk. By a whole warp.
  __device__ __forceinline__ void fetch(int stage, int piece) {
    if (threadIdx.x % 32 == 0) {
      const ptx::SharedAddress full = full_ + stage * 8;
      ptx::mbarrier_arrive_expect_tx(full, kStageBytes);
      ptx::tensor_copy_from_global(stages_ + stage * kStageBytes, args_.map,
                                   {chunk_ * kBlockPixels + piece * kPiecePixels, 0, channel_, image_}, full,
                                   ptx::kEvictFirst);
    }
    if (piece == kPieces - 1 && ++chunk_ == args_.chunks()) chunk_ = 0, ++image_;
  }
  /// As fetch(), to the stage of the piece before the one that was taken last.
  __device__ __forceinline__ void refill(int piece) { fetch(next_ == kStages - 1 ? 0 : next_ + 1, piece); }

  /// Waits for the next piece.
  __device__ __forceinline__ void take(Piece& piece) {
    ptx::mbarrier_wait(full_ + next_ * 8, parity_);
    piece.load(stages_ + next_ * kStageBytes, threadIdx.x % 32);
    if (++next_ == kStages) next_ = 0, parity_ ^= 1;
  }

 private:
  const Args& args_;
  ptx::SharedAddress stages_, full_;
  int channel_;
  int image_, chunk_;  // of what is sent for next
  int next_ = 0;       // stage that is taken from next
  std::uint32_t parity_ = 0;
};

/// If the blocks take tiles by turns, a chunk at an end of what a part has of an image is read by one of them
/// only; nobody in the other would know that its copy has come, before the slot is filled again. So the
/// producers of both tell each other that a chunk has come, each when it has sent the next one: `slot` and
/// `parity` are the next one's.
__device__ __forceinline__ void tell_that_chunk_came(SharedStorage& shared, int slot, std::uint32_t parity,
                                                     int rank) {
  if (slot == 0) parity ^= 1;
  slot = slot == 0 ? kSlots - 1 : slot - 1;
  ptx::mbarrier_wait(ptx::shared_address(&shared.chunk_full[slot]), parity);
  if (threadIdx.x % 32 != 0) return;
  const ptx::SharedAddress empty = ptx::shared_address(&shared.chunk_empty[slot]);
  ptx::mbarrier_arrive(empty);
  ptx::mbarrier_arrive_cluster(ptx::map_to_rank(empty, rank ^ 1));
}

/// Fills the ring: each warp one plane of 8 channels of every chunk.
template <class S>
__device__ __forceinline__ void produce(const Args& args, SharedStorage& shared, const Part& part, int rank,
                                        int warp) {
  const int lane = threadIdx.x % 32;
  const int plane = rank * kPlanesPerBlock + warp;
  const ptx::SharedAddress ring_plane = ptx::shared_address(shared.ring[plane]);
  int chunk = part.first_chunk, left = part.end_chunk - chunk;

  static_assert(kPieces == 2 && kStages == 3);
  PieceFeed feed(args, shared, chunk, plane, warp);
  feed.fetch(0, 0), feed.fetch(1, 1);
  if (left > 1) feed.fetch(2, 0);

  int slot = 0;
  std::uint32_t parity = 0;
  Piece pieces[kPieces];
  feed.take(pieces[0]);
  for (; left > 0; --left, ++chunk) {
    const ptx::SharedAddress slot_plane = ring_plane + slot * kChunkBytes,
                             repeated = ring_plane + kSlots * kChunkBytes;
    // Both blocks' consumers must have left the slot, for the peer's copy of it is written as well.
    ptx::mbarrier_wait(ptx::shared_address(&shared.chunk_empty[slot]), parity ^ 1);
    bool raised = false;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (i == 0 || left > 1) feed.take(pieces[i ^ 1]);  // takes its time, meanwhile
      const bool suspects = pieces[i].convert();
      if (left > 1 + i) feed.refill(i ^ 1);
      pieces[i].store(slot_plane + i * kPiecePixels * kGranuleBytes, lane);
      if (slot == 0) pieces[i].store(repeated + i * kPiecePixels * kGranuleBytes, lane);
      if (suspects) raised |= pieces[i].lost_bits();
    }
    raised = __any_sync(~0u, raised);
    ptx::fence_proxy_async();  // wgmma and the bulk copies read what was just written
    __syncwarp();              // every lane has written to the slot
    if (lane == 0) {
      const ptx::SharedAddress full = ptx::shared_address(&shared.chunk_full[slot]),
                               peer_full = ptx::map_to_rank(full, rank ^ 1);
      const auto copy_to_peer = [=](ptx::SharedAddress from) {
        ptx::bulk_copy_to_cluster(ptx::map_to_rank(from, rank ^ 1), from, kChunkBytes, peer_full);
      };
      arrive_full(full, warp, (slot == 0 ? 2 : 1) * kChunkBytes);
      copy_to_peer(slot_plane);
      if (slot == 0) copy_to_peer(repeated);
      args.raised[std::int64_t{chunk} * kPlanes + plane] = raised;
    }
    __syncwarp();
    if (S::kBlocksOfK == 1 && chunk > part.first_chunk) tell_that_chunk_came(shared, slot, parity, rank);
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
  if (S::kBlocksOfK == 1)  // nor may this block end before
    tell_that_chunk_came(shared, slot, parity, rank);
}

// --- consumers -------------------------------------------------------------------------------------------

/// sums = the tile's 9 taps. `chunk`: that it begins, counted from the part's first. Passes the turn before
/// the last tap, so that the tensor cores never run dry.
///
/// A barrier's parity tells one pass through the ring from the next only. Whoever has the turn knows that the
/// tile before has seen its last chunk come, and so, however far this tile's chunks are, that those a pass
/// before had come. If blocks take tiles by turns, that is the tile before the last one; but then a chunk
/// that has come tells that all before it have, the one right before it perhaps excepted: see
/// tell_that_chunk_came().
__device__ __forceinline__ void mma_stage(const Args& args, Accumulator& sums, SharedStorage& shared,
                                          unsigned chunk, int consumer) {
  wait_for_turn(consumer);
  unsigned unseen = chunk;
#pragma unroll
  for (int r = 0; r < kFilterSize; ++r) {
    const unsigned from = r * args.w, last = from + kBlockPixels + kFilterSize - 2;
#pragma unroll 1
    for (; unseen <= chunk + last / kBlockPixels; ++unseen)
      ptx::mbarrier_wait(ptx::shared_address(&shared.chunk_full[unseen % kSlots]), unseen / kSlots & 1);
    const unsigned slot = (chunk + from / kBlockPixels) % kSlots;
    const std::uint64_t pixels = pixel_descriptor(
        ptx::shared_address(shared.ring) + slot * kChunkBytes + from % kBlockPixels * kGranuleBytes,
        kPlaneBytes);
    mma_filter_row(sums, shared.filter, pixels, kPlaneBytes, r, consumer);
  }
  ptx::wgmma_wait_group<0>();
}

/// Gives a tile's chunks back to the producers of both blocks, a lane a chunk; by a warp. `first`, `last`: of
/// the tiles that the part has of the image. They give back for those as well that would read a chunk in the
/// midst of an image.
__device__ __forceinline__ void release(const Args& args, SharedStorage& shared, unsigned chunk, bool first,
                                        bool last, int rank) {
  const int i = threadIdx.x % 32;
  if (i > args.halo) return;
  const int readers = 1 + (first ? args.halo - i : 0) + (last ? i : 0);
  const ptx::SharedAddress empty = ptx::shared_address(&shared.chunk_empty[(chunk + i) % kSlots]);
  ptx::mbarrier_arrive(empty, readers);
  ptx::mbarrier_arrive_cluster(ptx::map_to_rank(empty, rank ^ 1), readers);
}

/// Bias, Mish, Mish, and the way to y of a warp's 16 channels from `first_k` on, half of them at a time.
__device__ __forceinline__ void store_tile(const Args& args, const Accumulator& sums,
                                           const ChannelAffine (&affine)[2], ptx::SharedAddress exchange,
                                           int image, int first_pixel, int first_k) {
  constexpr int kFragments = kRunPixels / 8;
  // Read anew, so that what follows from it takes no registers during the multiplications.
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  const int channel = lane / 4;
  // Fragments of a channel are permuted by its number, so that neither side has bank conflicts.
  const ptx::SharedAddress write = exchange + channel * kRunBytes + (channel % 4 * 32 + lane % 4 * 8),
                           read = exchange + lane * 8;
  const std::int64_t plane_bytes = std::int64_t{args.p} * args.q * sizeof(float);
  char* const y =
      reinterpret_cast<char*>(args.again.y) + (std::int64_t{image} * args.k + first_k) * plane_bytes;
#pragma unroll
  for (int run = 0; run < kBlockPixels / kRunPixels; ++run) {
    const int pixel = first_pixel + run * kRunPixels + 2 * lane;  // even, as rows are: two exist, or neither
    const auto [row, column] = args.by_w.divide(pixel);
    const int channels = row < args.p && column < args.q ? args.k - first_k : 0;
    char* out = y + std::int64_t{pixel - (args.w - args.q) * row} * sizeof(float);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Seldom true; but the branch keeps the parts apart, which the compiler would mix, and spill.
      if (!__any_sync(~0u, channels > 8 * half)) continue;
      float v[2 * kFragments];
#pragma unroll
      for (int i = 0; i < 2 * kFragments; ++i)
        v[i] = __fmaf_rn(sums[4 * (kFragments * run + i / 2) + 2 * half + i % 2], affine[half].scale,
                         affine[half].bias);
      mish_of_mish_of_ln2(v);
      __syncwarp();  // the last run has been read
#pragma unroll
      for (int i = 0; i < kFragments; ++i)
        ptx::store_shared(write ^ i * 32, make_float2(v[2 * i], v[2 * i + 1]));
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 8; ++i, out += plane_bytes) {
        const float2 pair = ptx::load_shared_float2((read ^ i % 4 * 32) + i * kRunBytes);
        if (8 * half + i < channels) ptx::store_global(reinterpret_cast<float*>(out), pair, ptx::kEvictLast);
      }
    }
  }
}

template <class S>
__device__ __forceinline__ void consume(const Args& args, SharedStorage& shared, const Part& part, int rank,
                                        int first_k, int consumer, int warp) {
  first_k += 16 * warp;
  ChannelAffine affine[2];
  for (int i = 0; i < 2; ++i) affine[i] = args.affine[first_k + threadIdx.x % 32 / 4 + 8 * i];
  const ptx::SharedAddress exchange = ptx::shared_address(shared.exchange[consumer][warp]);
  if (consumer == kConsumers - 1) pass_turn(consumer);  // the first turn is consumer 0's
  ptx::mbarrier_wait(ptx::shared_address(&shared.filter_full), 0);
#pragma unroll 1
  for (int tile = part.first_tile + S::first_tile(rank) + consumer * S::kTileStep; tile < part.end_tile;
       tile += kConsumers * S::kTileStep) {
    const auto [image, tile_of_image] = args.by_tiles.divide(tile);
    const unsigned chunk = tile + image * args.halo - part.first_chunk;
    Accumulator sums;
    mma_stage(args, sums, shared, chunk, consumer);
    release(args, shared, chunk, tile_of_image == 0 || tile == part.first_tile,
            tile_of_image == args.tiles - 1 || tile == part.end_tile - 1, rank);
    store_tile(args, sums, affine, exchange, image, tile_of_image * kBlockPixels, first_k);
  }
}

// --- what fp16 cannot serve ------------------------------------------------------------------------------

/// The outputs of a tile; see recompute_if_flagged().
struct TileOutputs {
  const Args& args;
  int tile;

  __device__ const std::uint8_t* flags() const {
    return args.raised + std::int64_t{args.chunk_of(tile)} * kPlanes;
  }
  __device__ int flag_count() const { return (1 + args.halo) * kPlanes; }
  __device__ int outputs() const { return kBlockPixels; }
  __device__ Position output(int i) const {
    const auto [image, tile_of_image] = args.by_tiles.divide(tile);
    const auto [row, column] = args.by_w.divide(tile_of_image * kBlockPixels + i);
    // Rows from p on have no outputs; those below the image must not be taken for the next one's.
    return {std::int64_t{image} * args.h + min(row, args.p), column};
  }
  __device__ bool exists(const Position& at) const { return at.row % args.h < args.p && at.column < args.q; }
};

/// For a consumer warp, after all of a part has been stored: this thread block's flagged outputs again in
/// fp32.
template <class S>
__device__ __forceinline__ void recompute_flagged(const Args& args, const Part& part, int rank, int k_block) {
  const auto* const flags = reinterpret_cast<const PlaneFlags*>(args.raised) + part.first_chunk;
  if (!any_flagged(flags, part.end_chunk - part.first_chunk)) return;
  const Channels channels{k_block * kBlockK, min((k_block + 1) * kBlockK, args.k)};
#pragma unroll 1
  for (int tile = part.first_tile + S::first_tile(rank); tile < part.end_tile; tile += S::kTileStep)
    recompute_if_flagged<1>(args.again, TileOutputs{args, tile}, channels, threadIdx.x / 32 - kWarpsPerGroup,
                            kConsumers * kWarpsPerGroup);
}

template <class S>
__device__ __forceinline__ void init_barriers(const Args& args, SharedStorage& shared) {
  ptx::mbarrier_init(ptx::shared_address(&shared.filter_full), 1);
  for (int i = 0; i < kSlots; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&shared.chunk_full[i]), kWarpsPerGroup);
    ptx::mbarrier_init(ptx::shared_address(&shared.chunk_empty[i]),
                       S::kBlocksOfK * kWarpsPerGroup * (1 + args.halo) +
                           (S::kBlocksOfK == 1 ? kClusterBlocks * kWarpsPerGroup : 0));
  }
  for (auto& barriers : shared.stage_full)
    for (std::uint64_t& barrier : barriers) ptx::mbarrier_init(ptx::shared_address(&barrier), 1);
  ptx::fence_mbarrier_init();
}

template <class S>
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(memory);
  const int rank = blockIdx.x % kClusterBlocks, cluster = blockIdx.x / kClusterBlocks;
  const int k_cluster = cluster % args.k_clusters;
  const int k_block = S::k_block(k_cluster, rank);
  const Part part(args, cluster / args.k_clusters);
  // By shuffle, so that the compiler knows them to be uniform: a divergent role would serialise wgmma.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int warp = __shfl_sync(~0u, threadIdx.x % 128 / 32, 0);

  if (threadIdx.x == 0) init_barriers<S>(args, shared);
  ptx::cluster_sync();  // the peer's barriers exist before anything is sent to them

  // At last, by both roles: the peer may still copy to, or arrive at, this block's shared memory.
  if (group == 0) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    produce<S>(args, shared, part, rank, warp);
    __syncwarp();
    ptx::cluster_sync();
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    if (group == 1 && warp == 0 && ptx::elect_one())
      load_filter(shared.filter, args.filter, k_block, ptx::shared_address(&shared.filter_full));
    __syncwarp();
    consume<S>(args, shared, part, rank, k_block * kBlockK, group - 1, warp);
    __syncwarp();
    ptx::cluster_sync();  // both blocks' flags are seen now
    recompute_flagged<S>(args, part, rank, k_block);
  }
}

}  // namespace convmish::hopper::pixel_ring
