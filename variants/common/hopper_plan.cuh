// How a variant of the Hopper family makes its plan: what holds for all of its kernels, and all of the
// streamed kernel's.
#pragma once

#include <algorithm>
#include <climits>
#include <optional>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_recompute.cuh"
#include "variants/common/hopper_repack.cuh"
#include "variants/common/hopper_streamed.cuh"

namespace convmish::hopper {

/// Counts that the kernels keep in 32 bits.
inline std::optional<std::string> why_too_large(const Shape& shape) {
  constexpr std::int64_t kLimit = INT_MAX / 2;
  if (shape.n * shape.h > kLimit) return "n * h is above " + std::to_string(kLimit);
  if (shape.w > kLimit) return "w is above " + std::to_string(kLimit);
  if (shape.c * kTaps > kLimit || shape.k > kLimit) return "c * 9 or k is above " + std::to_string(kLimit);
  return std::nullopt;
}

/// Why the family cannot compute a shape on a device; nothing if it can.
inline std::optional<std::string> why_unsupported(const Shape& shape, const DeviceInfo& device) {
  if (device.compute_major != 9)
    return "needs compute capability 9.0 (sm_90a), this device has " + std::to_string(device.compute_major) +
           "." + std::to_string(device.compute_minor);
  return why_too_large(shape);
}

inline RecomputeArgs recompute_args(const Shape& shape, const LaunchArgs& launch, const PackedFilter& packed,
                                    const float* bias, std::uint64_t* recomputed) {
  return {launch.x,
          launch.y,
          packed.transposed,
          bias,
          recomputed,
          static_cast<int>(shape.n),
          static_cast<int>(shape.c),
          static_cast<int>(shape.h),
          static_cast<int>(shape.w),
          static_cast<int>(shape.k),
          packed.unserved_count};
}

/// The plan of either kernel: first pass, then what it could not serve.
template <int kTerms, class Args, class Units>
Plan make_plan(const Problem& problem, Args args, void (*kernel)(Args), std::size_t shared_bytes, int threads,
               unsigned blocks, int cluster, std::int64_t flag_bytes, const PackedFilter& packed) {
  Plan plan;
  plan.workspace_bytes = static_cast<std::size_t>(flag_bytes);
  plan.recomputed_outputs = static_cast<std::uint64_t*>(problem.memory->allocate(sizeof(std::uint64_t)));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(plan.recomputed_outputs, 0, sizeof(std::uint64_t), problem.stream));
  plan.launch = [=, shape = problem.shape, bias = problem.bias,
                 recomputed = plan.recomputed_outputs](const LaunchArgs& launch) mutable {
    args.x = launch.x;
    args.y = launch.y;
    args.raised = static_cast<std::uint8_t*>(launch.workspace);
    kernel<<<blocks, threads, shared_bytes, launch.stream>>>(args);
    CONVMISH_CHECK_CUDA(cudaGetLastError());
    const RecomputeArgs again = recompute_args(shape, launch, packed, bias, recomputed);
    recompute<kTerms>(again, Units{args}, launch.stream);
    if (packed.unserved_count > 0)
      recompute_channels(again, packed.unserved, packed.unserved_count, launch.stream);
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
Args common_args(const Shape& shape, const PackedFilter& packed) {
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

/// Allows the kernel its shared memory and tells how many of its clusters the device runs at a time.
template <class Kernel>
int resident_clusters(Kernel kernel, int cluster_blocks, int threads, std::size_t shared_bytes) {
  allow_shared_memory(kernel, shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(cluster_blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(cluster_blocks), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  CONVMISH_CHECK_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
  if (clusters < 1) throw Unsupported("no cluster of two thread blocks fits on this device");
  return clusters;
}

/// Outputs of a streamed kernel's tile.
struct Tile {
  int rows = 0, columns = 0;
};

/// The tile with the fewest units for the whole batch, of those whose outputs fit in `tile_pixels` positions
/// and whose input fits in `stage_pixels`; among equals the one that reads least.
template <class Config>
Tile choose_tile(const Shape& shape) {
  Tile tile;
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
      tile = {.rows = static_cast<int>(rows), .columns = static_cast<int>(columns)};
    }
    if (columns <= kNarrowest) return tile;
  }
}

template <class C>
Plan prepare_streamed(const Problem& problem) {
  using namespace streamed;
  const Shape& shape = problem.shape;
  const PackedFilter packed = repack(problem, FilterLayout<C::kTerms>(problem.shape));
  const Tile tile = choose_tile<C>(shape);
  Args args = common_args<Args>(shape, packed);
  args.rows = tile.rows, args.columns = tile.columns;
  args.strips = static_cast<int>(divide_up(shape.q(), tile.columns));
  args.row_units = divide_up(shape.n * shape.h - (kFilterSize - 1), tile.rows);
  args.k_tiles = static_cast<int>(divide_up(shape.k, C::kM * kBlockK));

  const auto kernel = streamed::kernel<C>;
  allow_shared_memory(kernel, sizeof(SharedStorage<C>));
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(args.tiles(), problem.device->multiprocessors));
  Plan plan =
      make_plan<C::kTerms, Args, Units>(problem, args, kernel, sizeof(SharedStorage<C>), C::kThreads, blocks,
                                        1, args.units() * input_blocks(args.c) * kWarpsPerGroup, packed);
  plan.note += "streamed, tiles of " + std::to_string(C::kM * kBlockK) + " channels x " +
               std::to_string(args.rows) + " rows x " + std::to_string(args.columns) + " columns";
  return plan;
}

}  // namespace convmish::hopper
