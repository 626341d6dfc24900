// The whole operation for Hopper: wgmma with multiplicands rounded once to fp16.
//
// fp16 has the significand of TF32 (11 bits), so the error is TF32's, at twice its rate and half its bytes.
// What fp16 lacks is range: each output channel's filter is scaled by a power of two, x by a fixed one, and
// what still does not fit is recomputed in fp32 afterwards.
//
// Two kernels share the operands' layouts, the activation and that recomputation:
//   common/hopper_row_ring.cuh   c <= 64, wide rows: filter resident, x read once
//   common/hopper_packed.cuh     everything else, from a first pass that packs x
// This file chooses between them, and their tiles.

#include <algorithm>
#include <climits>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_packed_plan.cuh"
#include "variants/common/hopper_plan.cuh"
#include "variants/common/hopper_row_ring.cuh"

namespace convmish {
namespace {

constexpr int kTerms = 1;

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

Plan prepare_row_ring(const Problem& problem) {
  using namespace hopper::row_ring;
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem, hopper::FilterLayout<kTerms>(problem.shape));
  Args args = hopper::common_args<Args>(shape, packed);
  args.strips = static_cast<int>(divide_up(shape.q(), kStripColumns));
  args.k_clusters = static_cast<int>(divide_up(shape.k, kClusterK));
  args.channel_stride = shape.h * shape.w;

  const int clusters = hopper::resident_clusters(kernel, kClusterBlocks, kThreads, sizeof(SharedStorage));
  args.parts = std::max(1, clusters / args.k_clusters);

  Plan plan = hopper::make_plan<kTerms, Args, Units>(
      problem, args, kernel, sizeof(SharedStorage), kThreads,
      static_cast<unsigned>(args.parts * args.k_clusters * kClusterBlocks), kClusterBlocks,
      shape.n * args.strips * shape.h * hopper::kPlanes, packed);
  plan.note += hopper::row_ring_note(args.strips);
  return plan;
}

Plan prepare(const Problem& problem) {
  return suits_row_ring(problem.shape) ? prepare_row_ring(problem)
                                       : hopper::packed::prepare<kTerms, 64, 112, 128>(problem);
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
