// How a variant of the Hopper family makes its plan: what holds for all of its kernels.
#pragma once

#include <climits>
#include <optional>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/hopper_recompute.cuh"
#include "variants/common/hopper_repack.cuh"

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

/// How a kernel is launched.
template <class Args>
struct Launch {
  void (*kernel)(Args);
  unsigned blocks;
  int threads, cluster;
  std::size_t shared_bytes;
};

template <class Args>
LaunchGeometry geometry(const Launch<Args>& launch) {
  cudaFuncAttributes attributes;
  CONVMISH_CHECK_CUDA(cudaFuncGetAttributes(&attributes, launch.kernel));
  LaunchGeometry geometry;
  geometry.grid[0] = launch.blocks;
  geometry.block[0] = launch.threads;
  geometry.cluster = launch.cluster;
  geometry.shared_bytes = static_cast<std::int64_t>(launch.shared_bytes + attributes.sharedSizeBytes);
  geometry.registers = attributes.numRegs;
  geometry.local_bytes = static_cast<int>(attributes.localSizeBytes);
  geometry.blocks_per_multiprocessor = 1;
  return geometry;
}

/// The plan of any kernel: `passes(launch arguments, arguments for what has to be recomputed)`, which
/// launches it and sees to the values of x that it cannot serve, then the channels that it cannot.
template <class Passes>
Plan make_plan(const Problem& problem, const PackedFilter& packed, const LaunchGeometry& geometry,
               std::int64_t workspace_bytes, Passes passes) {
  Plan plan;
  plan.workspace_bytes = static_cast<std::size_t>(workspace_bytes);
  plan.geometry = geometry;
  plan.recomputed_outputs = static_cast<std::uint64_t*>(problem.memory->allocate(sizeof(std::uint64_t)));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(plan.recomputed_outputs, 0, sizeof(std::uint64_t), problem.stream));
  plan.launch = [=, shape = problem.shape, bias = problem.bias,
                 recomputed = plan.recomputed_outputs](const LaunchArgs& launch) mutable {
    const RecomputeArgs again = recompute_args(shape, launch, packed, bias, recomputed);
    passes(launch, again);
    if (packed.unserved_count > 0)
      recompute_channels(again, packed.unserved, packed.unserved_count, launch.stream);
  };
  if (packed.unserved_count > 0)
    plan.note =
        std::to_string(packed.unserved_count) + " output channels in fp32 (filter beyond fp16's range); ";
  return plan;
}

/// The plan of a kernel that reads x itself.
template <int kTerms, class Args, class Units>
Plan make_plan(const Problem& problem, Args args, void (*kernel)(Args), std::size_t shared_bytes, int threads,
               unsigned blocks, int cluster, std::int64_t flag_bytes, const PackedFilter& packed) {
  return make_plan(problem, packed, geometry(Launch<Args>{kernel, blocks, threads, cluster, shared_bytes}),
                   flag_bytes, [=](const LaunchArgs& launch, const RecomputeArgs& again) mutable {
                     args.x = launch.x;
                     args.y = launch.y;
                     args.raised = static_cast<std::uint8_t*>(launch.workspace);
                     kernel<<<blocks, threads, shared_bytes, launch.stream>>>(args);
                     CONVMISH_CHECK_CUDA(cudaGetLastError());
                     recompute<kTerms>(again, Units{args}, launch.stream);
                   });
}

/// What kernels that read x themselves are told; their tiles are still to be filled in.
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

inline std::string row_ring_note(int strips) {
  return "row ring, " + std::to_string(strips) + (strips == 1 ? " strip" : " strips") + " of columns";
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

}  // namespace convmish::hopper
