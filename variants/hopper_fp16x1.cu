// The whole fused operation in one kernel for Hopper: wgmma with multiplicands rounded once to fp16.
//
// fp16 has the significand of TF32 (11 bits), so the error is TF32's, at twice its rate and half its bytes.
// What fp16 lacks is range: each output channel's filter is scaled by a power of two, x by a fixed one, and
// what still does not fit is recomputed in fp32 by a second pass, which otherwise finds nothing to do.
//
// Two kernels share the operands' layouts, the activation and the second pass:
//   common/hopper_row_ring.cuh   c <= 64, wide rows: filter resident, x read once
//   common/hopper_streamed.cuh   everything else
// This file chooses between them, and their tiles.

#include <algorithm>
#include <climits>
#include <memory>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_repack.cuh"
#include "variants/common/hopper_row_ring.cuh"
#include "variants/common/hopper_streamed.cuh"

namespace convmish {
namespace {

/// One shape's way through the family: which kernel, which tiles.
struct Choice {
  bool row_ring = false;
  int blocks_m = 1;           // streamed: blocks of 64 output channels a tile
  int rows = 0, columns = 0;  // streamed: outputs of a tile
};

/// The tile with the fewest units for the whole batch, of those whose outputs fit in `tile_pixels` positions
/// and whose input fits in `stage_pixels`; among equals the one that reads least.
template <class Config>
void choose_tile(const Shape& shape, Choice& choice) {
  constexpr int kHalo = kFilterSize - 1;
  const std::int64_t batch_rows = shape.n * shape.h - kHalo;
  std::int64_t best_units = INT64_MAX, best_pixels = INT64_MAX;
  constexpr std::int64_t kWidest = Config::kStagePixels / (1 + kHalo) - kHalo, kNarrowest = 8;
  for (std::int64_t strips = divide_up(shape.q(), kWidest);; ++strips) {
    std::int64_t columns = divide_up(shape.q(), strips);
    if (shape.q() % 2 == 0) columns += columns % 2;  // pairs of outputs can then be stored together
    const std::int64_t stage_columns = columns + kHalo;
    const std::int64_t rows = std::min({(Config::kTilePixels - columns) / stage_columns + 1,
                                        Config::kStagePixels / stage_columns - kHalo, batch_rows});
    const std::int64_t units =
        divide_up(shape.q(), columns) * divide_up(batch_rows, std::max<std::int64_t>(rows, 1));
    const std::int64_t pixels = (rows + kHalo) * stage_columns;
    if (rows >= 1 && (units < best_units || (units == best_units && pixels < best_pixels))) {
      best_units = units, best_pixels = pixels;
      choice.rows = static_cast<int>(rows), choice.columns = static_cast<int>(columns);
    }
    if (columns <= kNarrowest) return;
  }
}

Choice choose(const Shape& shape) {
  namespace ring = hopper::row_ring;
  Choice choice;
  // The ring's products come in rows of 128 or 256 pixels and in pairs of 64 channels: it wants both well
  // filled.
  const std::int64_t last_strip = (shape.q() - 1) % ring::kStripColumns + 1;
  const std::int64_t row_pixels = shape.q() / ring::kStripColumns * ring::kRowPixels +
                                  (last_strip == ring::kStripColumns
                                       ? 0
                                       : divide_up(last_strip, hopper::kBlockPixels) * hopper::kBlockPixels);
  choice.row_ring = shape.c <= hopper::kBlockC && shape.k > hopper::kBlockK &&
                    4 * row_pixels <= 5 * shape.q() &&
                    shape.n * shape.h * divide_up(shape.q(), ring::kStripColumns) <= INT_MAX;
  choice.blocks_m = shape.k > hopper::kBlockK ? 2 : 1;
  if (choice.blocks_m == 2)
    choose_tile<hopper::streamed::Config<2>>(shape, choice);
  else
    choose_tile<hopper::streamed::Config<1>>(shape, choice);
  return choice;
}

hopper::RecomputeArgs recompute_args(const Shape& shape, const LaunchArgs& launch, const float* filter,
                                     const float* bias) {
  return {launch.x,
          launch.y,
          filter,
          bias,
          static_cast<int>(shape.n),
          static_cast<int>(shape.c),
          static_cast<int>(shape.h),
          static_cast<int>(shape.w),
          static_cast<int>(shape.k)};
}

/// The plan of either kernel: first pass, then what it could not serve.
template <class Args, class Units>
Plan make_plan(const Problem& problem, Args args, void (*kernel)(Args), std::size_t shared_bytes, int threads,
               unsigned blocks, int cluster, std::int64_t flag_bytes, const hopper::PackedFilter& packed) {
  Plan plan;
  plan.workspace_bytes = static_cast<std::size_t>(flag_bytes);
  plan.launch = [=, shape = problem.shape, bias = problem.bias](const LaunchArgs& launch) mutable {
    args.x = launch.x;
    args.y = launch.y;
    args.raised = static_cast<std::uint8_t*>(launch.workspace);
    kernel<<<blocks, threads, shared_bytes, launch.stream>>>(args);
    CONVMISH_CHECK_CUDA(cudaGetLastError());
    const hopper::RecomputeArgs again = recompute_args(shape, launch, packed.transposed, bias);
    hopper::recompute(again, Units{args}, launch.stream);
    if (packed.unserved_count > 0)
      hopper::recompute_channels(again, packed.unserved, packed.unserved_count, launch.stream);
  };

  cudaFuncAttributes attributes;
  CONVMISH_CHECK_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  LaunchGeometry geometry;
  geometry.grid[0] = blocks;
  geometry.block[0] = threads;
  geometry.cluster = cluster;
  geometry.shared_bytes = static_cast<std::int64_t>(shared_bytes + attributes.sharedSizeBytes);
  geometry.registers = attributes.numRegs;
  geometry.local_bytes = static_cast<int>(attributes.localSizeBytes);
  geometry.blocks_per_multiprocessor = 1;
  plan.geometry = geometry;
  if (packed.unserved_count > 0)
    plan.note =
        std::to_string(packed.unserved_count) + " output channels in fp32 (filter beyond fp16's range); ";
  return plan;
}

/// What both kernels are told; their tiles are still to be filled in.
template <class Args>
Args common_args(const Shape& shape, const hopper::PackedFilter& packed) {
  Args args{};
  args.filter = packed.halves;
  args.affine = packed.affine;
  args.n = static_cast<int>(shape.n), args.c = static_cast<int>(shape.c), args.h = static_cast<int>(shape.h);
  args.w = static_cast<int>(shape.w), args.k = static_cast<int>(shape.k);
  args.p = static_cast<int>(shape.p()), args.q = static_cast<int>(shape.q());
  return args;
}

template <class Kernel>
void allow_shared_memory(Kernel kernel, std::size_t bytes) {
  CONVMISH_CHECK_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

Plan prepare_row_ring(const Problem& problem) {
  using namespace hopper::row_ring;
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem);
  Args args = common_args<Args>(shape, packed);
  args.strips = static_cast<int>(divide_up(shape.q(), kStripColumns));
  args.k_clusters = static_cast<int>(divide_up(shape.k, kClusterK));

  const auto kernel = shape.q() % 2 == 0 ? hopper::row_ring::kernel<true> : hopper::row_ring::kernel<false>;
  allow_shared_memory(kernel, sizeof(SharedStorage));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kClusterBlocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = sizeof(SharedStorage);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kClusterBlocks, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  CONVMISH_CHECK_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
  if (clusters < 1) throw Unsupported("no cluster of two thread blocks fits on this device");
  args.parts = std::max(1, clusters / args.k_clusters);

  Plan plan =
      make_plan<Args, Units>(problem, args, kernel, sizeof(SharedStorage), kThreads,
                             static_cast<unsigned>(args.parts * args.k_clusters * kClusterBlocks),
                             kClusterBlocks, shape.n * args.strips * shape.h * hopper::kPlanes, packed);
  plan.note += "row ring, " + std::to_string(args.strips) + " strips of columns";
  return plan;
}

template <int kM>
Plan prepare_streamed(const Problem& problem, const Choice& choice) {
  using namespace hopper::streamed;
  using C = Config<kM>;
  const Shape& shape = problem.shape;
  const hopper::PackedFilter packed = hopper::repack(problem);
  Args args = common_args<Args>(shape, packed);
  args.rows = choice.rows, args.columns = choice.columns;
  args.strips = static_cast<int>(divide_up(shape.q(), choice.columns));
  args.row_units = divide_up(shape.n * shape.h - (kFilterSize - 1), choice.rows);
  args.k_tiles = static_cast<int>(divide_up(shape.k, kM * hopper::kBlockK));

  const auto kernel = hopper::streamed::kernel<C>;
  allow_shared_memory(kernel, sizeof(SharedStorage<C>));
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(args.tiles(), problem.device->multiprocessors));
  Plan plan = make_plan<Args, Units>(problem, args, kernel, sizeof(SharedStorage<C>), kThreads, blocks, 1,
                                     args.units() * hopper::input_blocks(args.c) * kWarpsPerGroup, packed);
  plan.note += "streamed, tiles of " + std::to_string(kM * hopper::kBlockK) + " channels x " +
               std::to_string(args.rows) + " rows x " + std::to_string(args.columns) + " columns";
  return plan;
}

Plan prepare(const Problem& problem) {
  const Choice choice = choose(problem.shape);
  if (choice.row_ring) return prepare_row_ring(problem);
  return choice.blocks_m == 2 ? prepare_streamed<2>(problem, choice) : prepare_streamed<1>(problem, choice);
}

std::optional<std::string> supports(const Shape& shape, const DeviceInfo& device) {
  if (device.compute_major != 9)
    return "needs compute capability 9.0 (sm_90a), this device has " + std::to_string(device.compute_major) +
           "." + std::to_string(device.compute_minor);
  // Counts that the kernels keep in 32 bits.
  constexpr std::int64_t kLimit = INT_MAX / 2;
  if (shape.n * shape.h > kLimit) return "n * h is above " + std::to_string(kLimit);
  if (shape.w > kLimit) return "w is above " + std::to_string(kLimit);
  if (shape.c * kTaps > kLimit || shape.k > kLimit) return "c * 9 or k is above " + std::to_string(kLimit);
  return std::nullopt;
}

const RegisterVariant registered{{
    .name = "hopper_fp16x1",
    .summary = "fused, wgmma: multiplicands rounded once to fp16, fp32 sums",
    .device = DeviceKind::cuda,
    .math = MathClass::tf32,
    .pipe = Pipe::tensor_fp16,
    .min_compute_capability = 90,
    .supports = supports,
    .prepare = prepare,
}};

}  // namespace
}  // namespace convmish
