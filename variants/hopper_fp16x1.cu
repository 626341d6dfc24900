// The whole operation for Hopper: wgmma with multiplicands rounded once to fp16.
//
// fp16 has the significand of TF32 (11 bits), so the error is TF32's, at twice its rate and half its bytes.
// What fp16 lacks is range: each output channel's filter is scaled by a power of two, x by a fixed one, and
// what still does not fit is recomputed in fp32 afterwards.
//
// Three kernels share the operands' layouts, the activation and that recomputation:
//   common/hopper_pixel_ring.cuh  c <= 64, narrow even rows: filter resident, x read once
//   common/hopper_row_ring.cuh    c <= 64, wide even rows: the same, y in whole sectors
//   common/hopper_packed.cuh      everything else, from a first pass that packs x
// This file chooses between them, and their tiles.

#include <algorithm>
#include <climits>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_packed_plan.cuh"
#include "variants/common/hopper_pixel_ring.cuh"
#include "variants/common/hopper_plan.cuh"
#include "variants/common/hopper_row_ring.cuh"

namespace convmish {
namespace {

constexpr int kTerms = 1;

/// Tiles of the pixel ring in an image.
std::int64_t pixel_ring_tiles(const Shape& shape) {
  return divide_up((shape.p() - 1) * shape.w + shape.q(), hopper::kBlockPixels);
}

/// Whether the pixel ring can take the shape: rows that it can hold, and images that a tensor copy can read.
bool fits_pixel_ring(const Shape& shape) {
  namespace ring = hopper::pixel_ring;
  return shape.c <= hopper::kBlockC && shape.w <= ring::kLargestWidth && shape.w % 2 == 0 &&
         shape.h * shape.w % 4 == 0 && shape.h * shape.w <= INT_MAX / 2 &&
         shape.n * (pixel_ring_tiles(shape) + ring::kMostChunks) <= INT_MAX / 2;
}

/// Blocks of 64 output channels that a cluster of the pixel ring computes.
int pixel_ring_blocks_of_k(const Shape& shape) {
  return shape.k <= hopper::kBlockK ? 1 : 2;
}

/// Whether the pixel ring takes the shape, as it does where it was measured to be faster on an H200. It
/// computes one block of output channels or an even number, 64 input channels, however few there are, and all
/// of a tile, however few of its pixels are outputs; and a cluster needs tiles enough for its filter and for
/// the pixels to pay that it reads beyond them.
bool suits_pixel_ring(const Shape& shape, const DeviceInfo& device) {
  namespace ring = hopper::pixel_ring;
  const std::int64_t blocks = divide_up(shape.k, hopper::kBlockK);
  if (!fits_pixel_ring(shape) || (blocks > 1 && blocks % 2 != 0)) return false;
  const std::int64_t tiles = pixel_ring_tiles(shape);
  const double filled = static_cast<double>(shape.p() * shape.q()) /
                        static_cast<double>(tiles * hopper::kBlockPixels),
               tiles_of_cluster =
                   static_cast<double>(shape.n * tiles * divide_up(blocks, pixel_ring_blocks_of_k(shape))) *
                   ring::kClusterBlocks / device.multiprocessors;
  const bool reads_few = ring::halo(static_cast<int>(shape.w)) < ring::kMostChunks - 1;
  const double least_tiles = shape.c <= hopper::kBlockC / 2 ? 32
                             : blocks == 1                  ? 12.5
                             : reads_few                    ? 3.5
                                                            : 5,
               least_filled = blocks > 1 && tiles_of_cluster >= 10 ? 0.65 : 0.8;
  return filled >= least_filled && tiles_of_cluster >= least_tiles;
}

/// Whether the row ring takes the shape: its products come in tiles of 128 pixels of a row and in pairs of 64
/// channels, and it wants both well filled; tiles most where the last strip has only one, which costs its
/// producers as much as two, least in large batches, where the packed kernel's pass over x tells (measured
/// with c = 64). Packed is what was measured to be faster: a row that does not fill one tile; one that fills
/// one but is no multiple of 16 bytes, unless two rows are and there are many; and odd rows, whose outputs
/// are stored one by one.
bool suits_row_ring(const Shape& shape) {
  namespace ring = hopper::row_ring;
  const std::int64_t rows = shape.n * shape.h, tiles = divide_up(shape.q(), hopper::kBlockPixels);
  const double filled = static_cast<double>(shape.q()) / static_cast<double>(tiles * hopper::kBlockPixels);
  const double least_filled = tiles % ring::kTilesPerRow != 0                 ? 0.8
                              : rows >= 8192 && shape.c > hopper::kBlockC / 2 ? 0.625
                                                                              : 0.75;
  const bool suits_one_tile = shape.w % 4 == 0 || (shape.h % 2 == 0 && rows >= 2048);
  return shape.c <= hopper::kBlockC && shape.k > hopper::kBlockK && filled >= least_filled &&
         shape.w >= hopper::kBlockPixels && shape.q() % 2 == 0 && (tiles > 1 || suits_one_tile) &&
         rows * divide_up(shape.q(), ring::kStripColumns) <= INT_MAX;
}

/// Parts that the work is divided in, in a ring's kernel: clusters for each cluster's worth of output
/// channels.
template <class SharedStorage, class Args>
int ring_parts(const Problem& problem, void (*kernel)(Args), int k_clusters, std::int64_t work) {
  using namespace hopper::ring;
  const int resident = hopper::resident_clusters(kernel, kClusterBlocks, kThreads, sizeof(SharedStorage)),
            clusters = std::min(resident, problem.device->multiprocessors / kClusterBlocks);
  return static_cast<int>(std::clamp<std::int64_t>(clusters / k_clusters, 1, work));
}

template <class SharedStorage, class Args>
hopper::Launch<Args> ring_launch(void (*kernel)(Args), const Args& args) {
  using namespace hopper::ring;
  return {kernel, static_cast<unsigned>(args.parts * args.k_clusters * kClusterBlocks), kThreads,
          kClusterBlocks, sizeof(SharedStorage)};
}

Plan prepare_pixel_ring(const Problem& problem) {
  using namespace hopper::pixel_ring;
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem, hopper::FilterLayout<kTerms>(shape));
  Args args = hopper::common_args<Args>(shape, packed);
  args.tiles = static_cast<int>(pixel_ring_tiles(shape));
  args.halo = halo(args.w);
  args.by_w = FastDividerOf(args.w), args.by_tiles = FastDividerOf(args.tiles);
  const int blocks_of_k = pixel_ring_blocks_of_k(shape);
  const auto function = blocks_of_k == 1 ? kernel<Sharing<1>> : kernel<Sharing<2>>;
  args.k_clusters = static_cast<int>(divide_up(shape.k, blocks_of_k * hopper::kBlockK));
  args.parts = ring_parts<SharedStorage>(problem, function, args.k_clusters, args.total_tiles());

  const hopper::Launch<Args> main = ring_launch<SharedStorage>(function, args);
  Plan plan =
      hopper::make_plan(problem, packed, hopper::geometry(main), shape.n * args.chunks() * hopper::kPlanes,
                        [=](const LaunchArgs& launch, const hopper::RecomputeArgs& again) mutable {
                          args.again = again;
                          args.raised = static_cast<std::uint8_t*>(launch.workspace);
                          args.map_x();
                          main.kernel<<<main.blocks, main.threads, main.shared_bytes, launch.stream>>>(args);
                          CONVMISH_CHECK_CUDA(cudaGetLastError());
                        });
  plan.note += "pixel ring, " + std::to_string(args.tiles) + " tiles an image";
  return plan;
}

Plan prepare_row_ring(const Problem& problem) {
  using namespace hopper::row_ring;
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem, hopper::FilterLayout<kTerms>(shape));
  Args args = hopper::common_args<Args>(shape, packed);
  args.strips = static_cast<int>(divide_up(shape.q(), kStripColumns));
  args.k_clusters = static_cast<int>(divide_up(shape.k, kClusterK));
  args.channel_stride = shape.h * shape.w;
  args.parts = ring_parts<SharedStorage>(problem, kernel, args.k_clusters, args.total_rows());

  const hopper::Launch<Args> main = ring_launch<SharedStorage>(kernel, args);
  Plan plan = hopper::make_plan(
      problem, packed, hopper::geometry(main), shape.n * args.strips * shape.h * hopper::kPlanes,
      [=](const LaunchArgs& launch, const hopper::RecomputeArgs& again) mutable {
        args.x = launch.x, args.y = launch.y;
        args.raised = static_cast<std::uint8_t*>(launch.workspace);
        args.map_x();
        main.kernel<<<main.blocks, main.threads, main.shared_bytes, launch.stream>>>(args);
        CONVMISH_CHECK_CUDA(cudaGetLastError());
        hopper::launch_after_start(second_pass_kernel, main.blocks, kSecondPassThreads, 0, 1, launch.stream,
                                   args, again);
      });
  plan.note += hopper::row_ring_note(args.strips);
  return plan;
}

Plan prepare(const Problem& problem) {
  if (suits_pixel_ring(problem.shape, *problem.device)) return prepare_pixel_ring(problem);
  if (suits_row_ring(problem.shape)) return prepare_row_ring(problem);
  return hopper::packed::prepare<kTerms, 64, 112, 128>(problem);
}

const RegisterVariant registered{{
    .name = "hopper_fp16x1",
    .summary = "fused, wgmma: multiplicands rounded once to fp16, fp32 sums",
    .device = DeviceKind::cuda,
    .math = MathClass::tf32,
    .pipe = Pipe::tensor_fp16,
    .min_compute_capability = 90,
    .supports = hopper::why_unsupported,
    .prepare = prepare,
}};

}  // namespace
}  // namespace convmish
