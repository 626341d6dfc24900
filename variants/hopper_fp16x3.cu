// The whole operation for Hopper, with fp32's accuracy from the tensor cores.
//
// Each multiplicand is split in two fp16 terms, x = xh + 2^-11 xl and w = wh + 2^-11 wl after scaling by
// powers of two: 22 bits. A product takes three: xh wh + 2^-11 (xl wh + xh wl); the fourth, of the low terms,
// counts 2^-22. What the tensor cores add up they truncate, so that the small products are summed apart from
// the large ones, and these in short runs, whose sums fp32 additions join.
//
// Range as for hopper_fp16x1: what fp16 cannot hold is recomputed in fp32. Two kernels:
//   common/hopper_split_ring.cuh   c <= 64, wide rows: filter resident, x read once
//   common/hopper_packed.cuh       everything else, from a first pass that packs x

#include <algorithm>
#include <climits>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_packed_plan.cuh"
#include "variants/common/hopper_plan.cuh"
#include "variants/common/hopper_split_ring.cuh"

namespace convmish {
namespace {

namespace ring = hopper::split_ring;
constexpr int kTerms = ring::kTerms;

/// Whether the ring takes the shape: its products come in strips of 88 columns and in pairs of 64 channels,
/// and it wants both well filled.
bool suits_ring(const Shape& shape) {
  const std::int64_t strips = divide_up(shape.q(), ring::kStripColumns);
  return shape.c <= hopper::kBlockC && shape.k > hopper::kBlockK &&
         4 * strips * ring::kStripColumns <= 5 * shape.q() && shape.n * shape.h * strips <= INT_MAX;
}

/// Parts to divide `rows` in, so that `units` clusters a part, of which `resident` run at a time, end
/// soonest.
int choose_parts(std::int64_t rows, std::int64_t units, std::int64_t resident) {
  std::int64_t best = 1, best_rows = INT64_MAX;
  for (std::int64_t parts = 1; parts <= std::max<std::int64_t>(2 * resident / units, 1); ++parts) {
    const std::int64_t rows_in_turn = divide_up(parts * units, resident) * divide_up(rows, parts);
    if (rows_in_turn < best_rows) best = parts, best_rows = rows_in_turn;
  }
  return static_cast<int>(best);
}

Plan prepare_ring(const Problem& problem) {
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem, hopper::FilterLayout<kTerms>(problem.shape));
  ring::Args args = hopper::common_args<ring::Args>(shape, packed);
  args.strips = static_cast<int>(divide_up(shape.q(), ring::kStripColumns));
  args.k_clusters = static_cast<int>(divide_up(shape.k, ring::kClusterK));

  const auto kernel = shape.q() % 2 == 0 ? ring::kernel<true> : ring::kernel<false>;
  const int clusters =
      hopper::resident_clusters(kernel, ring::kClusterBlocks, ring::kThreads, sizeof(ring::SharedStorage));
  const int units = args.strips * args.k_clusters;
  args.parts = choose_parts(args.batch_rows(), units, clusters);

  Plan plan = hopper::make_plan<kTerms, ring::Args, ring::Units>(
      problem, args, kernel, sizeof(ring::SharedStorage), ring::kThreads,
      static_cast<unsigned>(args.parts * units * ring::kClusterBlocks), ring::kClusterBlocks,
      shape.n * args.strips * shape.h * hopper::kPlanes, packed);
  plan.note += hopper::row_ring_note(args.strips);
  return plan;
}

Plan prepare(const Problem& problem) {
  return suits_ring(problem.shape) ? prepare_ring(problem)
                                   : hopper::packed::prepare<kTerms, 64, 104, 112, 128>(problem);
}

const RegisterVariant registered{{
    .name = "hopper_fp16x3",
    .summary = "fused, wgmma: multiplicands split in two fp16 terms, three products, fp32 sums",
    .device = DeviceKind::cuda,
    .math = MathClass::fp32,
    .pipe = Pipe::tensor_fp16,
    .products = 3,
    .min_compute_capability = 90,
    .supports = hopper::why_unsupported,
    .prepare = prepare,
}};

}  // namespace
}  // namespace convmish
