// The dialect that portable kernels are written in: plain CUDA, which nvcc builds for the GPU and the host
// compiler builds for the CPU device, where a SIMT executor runs it (src/cpu/simt).
//
// A kernel is a trivially copyable functor. Its members are its arguments:
//
//   struct ScaleKernel {
//     static constexpr const char* kName = "scale";   // for messages
//     static constexpr dim3 kBlock{256};               // the only block size it can be launched with
//     struct SharedStorage { float tile[256]; };       // or NoSharedStorage
//     const float* in; float* out;
//     __device__ void operator()(SharedStorage& shared) const { ... threadIdx ... __syncthreads() ... }
//   };
//   launch_kernel(ScaleKernel{in, out}, dim3(blocks), stream);
//
// What the dialect has: threadIdx, blockIdx, __syncthreads, __ldg, __umul64hi, CONVMISH_UNROLL, FloatVector.
// All shared memory is the one SharedStorage object: on the CPU it is one heap object a block, so that a
// sanitizer sees an index that leaves it. A kernel may ask for the registers that kMinBlocks blocks a
// multiprocessor leave (default 1). A kernel whose bank conflicts `explain` is to count takes the element of
// its shared arrays as a template parameter, and names its form with recorded elements:
//
//   template <template <class, ArrayName> class Element = PlainElement>
//   struct ScaleKernel {
//     using Recorded = ScaleKernel<RecordedElement>;
//     struct SharedStorage { Element<float, "tile"> tile[256]; };
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <type_traits>

#include "core/variant.hpp"
#include "variants/common/kernel_forms.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include "gpu/check.hpp"
// One binary holds both builds of a kernel: whatever a header of this dialect defines lives in a namespace
// of its own for each, or the linker would keep one of the two for both. So for the two builds by nvcc.
#if defined(CONVMISH_FAST_MATH)
#define CONVMISH_KERNEL_TARGET on_cuda_fast_math
#else
#define CONVMISH_KERNEL_TARGET on_cuda
#endif
#define CONVMISH_UNROLL _Pragma("unroll")
#else
#include "cpu/simt/dialect.hpp"
#include "cpu/simt/executor.hpp"
#include "cpu/simt/recorded_element.hpp"
#define CONVMISH_KERNEL_TARGET on_cpu
#define CONVMISH_UNROLL
#endif

namespace convmish::inline CONVMISH_KERNEL_TARGET {

#if defined(__CUDACC__)
inline constexpr DeviceKind kKernelDevice = DeviceKind::cuda;
inline constexpr bool kKernelEmulated = false;
#else
inline constexpr DeviceKind kKernelDevice = DeviceKind::cpu;
inline constexpr bool kKernelEmulated = true;
using simt::dim3;
#endif
#if defined(CONVMISH_FAST_MATH)  // defined with the flag, by CMake
inline constexpr Arithmetic kKernelArithmetic = Arithmetic::fast;
#else
inline constexpr Arithmetic kKernelArithmetic = Arithmetic::ieee;
#endif

/// A row of the registry with what the build of a portable kernel decides filled in.
inline Variant portable_variant(Variant row) {
  row.device = kKernelDevice;
  row.emulated = kKernelEmulated;
  if constexpr (kKernelArithmetic == Arithmetic::fast) {
    row.name += "_fast_math";
    row.summary += "; built with --use_fast_math";
    row.group = Group::ablation;
  }
  return row;
}

struct NoSharedStorage {};

/// What the accesses to a shared array are told by.
template <std::size_t kSize>
struct ArrayName {
  char text[kSize];
  constexpr ArrayName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
};

/// What a kernel's shared arrays are made of: plain elements, or such that the CPU device records the
/// accesses to.
template <class T, ArrayName>
using PlainElement = T;
#if defined(__CUDACC__)
template <class T, ArrayName>
using RecordedElement = T;
#else
template <class T, ArrayName kName>
using RecordedElement = simt::RecordedElement<T, kName>;
#endif

/// kWidth floats that are loaded and stored by one instruction, at an address aligned to all of them.
template <unsigned kWidth>
struct alignas(kWidth * sizeof(float)) FloatVector {
  static_assert(kWidth == 1 || kWidth == 2 || kWidth == 4);
  float lane[kWidth];
};

template <class Kernel>
constexpr std::size_t shared_bytes() {
  using Storage = typename Kernel::SharedStorage;
  return std::is_empty_v<Storage> ? 0 : sizeof(Storage);
}

template <class Kernel>
constexpr int threads_per_block() {
  return static_cast<int>(Kernel::kBlock.x * Kernel::kBlock.y * Kernel::kBlock.z);
}

/// "kernel tiled, grid 256x128x64, block 16x16x1, 10656 bytes of shared memory", for messages.
template <class Kernel>
std::string describe_launch(dim3 grid) {
  const auto extent = [](dim3 d) {
    return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
  };
  return std::string("kernel ") + Kernel::kName + ", grid " + extent(grid) + ", block " +
         extent(Kernel::kBlock) + ", " + std::to_string(shared_bytes<Kernel>()) + " bytes of shared memory";
}

#if defined(__CUDACC__)

template <class Kernel>
constexpr int min_blocks_per_multiprocessor() {
  if constexpr (requires { Kernel::kMinBlocks; }) {
    return Kernel::kMinBlocks;
  } else {
    return 1;
  }
}

template <class Kernel>
__global__ void __launch_bounds__(threads_per_block<Kernel>(), min_blocks_per_multiprocessor<Kernel>())
    kernel_entry(const __grid_constant__ Kernel kernel) {
  static_assert(alignof(typename Kernel::SharedStorage) <= 128);
  extern __shared__ __align__(128) unsigned char storage[];
  kernel(*reinterpret_cast<typename Kernel::SharedStorage*>(storage));
}

/// Without the attribute a launch is refused above 48 KB of dynamic shared memory.
template <class Kernel>
void allow_shared_bytes() {
  if constexpr (shared_bytes<Kernel>() > 48 * 1024) {
    CONVMISH_CHECK_CUDA(cudaFuncSetAttribute(kernel_entry<Kernel>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared_bytes<Kernel>())));
  }
}

/// Puts the kernel on `stream`. Throws DeviceError if the launch is refused.
template <class Kernel>
void launch_kernel(const Kernel& kernel, dim3 grid, Stream stream) {
  static_assert(std::is_trivially_copyable_v<Kernel>);
  allow_shared_bytes<Kernel>();
  kernel_entry<Kernel><<<grid, Kernel::kBlock, shared_bytes<Kernel>(), stream>>>(kernel);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    check_cuda(error, describe_launch<Kernel>(grid).c_str());
}

#else

/// One thread of the kernel `functor`.
template <class Kernel>
void run_thread(const void* functor, void* shared) {
  (*static_cast<const Kernel*>(functor))(*static_cast<typename Kernel::SharedStorage*>(shared));
}

/// The same of the kernel's recorded form, which has the very same members; null where there is none. A
/// kernel without shared memory has nothing to record.
template <class Kernel>
constexpr auto recorded_thread() -> void (*)(const void*, void*) {
  if constexpr (requires { typename Kernel::Recorded; }) {
    return [](const void* functor, void* shared) {
      using Recorded = typename Kernel::Recorded;
      const auto recorded = std::bit_cast<Recorded>(*static_cast<const Kernel*>(functor));
      recorded(*static_cast<typename Recorded::SharedStorage*>(shared));
    };
  } else if constexpr (shared_bytes<Kernel>() == 0) {
    return run_thread<Kernel>;
  } else {
    return nullptr;
  }
}

/// Runs the kernel to its end. Throws DeviceError if a GPU would refuse the launch.
template <class Kernel>
void launch_kernel(const Kernel& kernel, dim3 grid, Stream) {
  using Storage = typename Kernel::SharedStorage;
  static_assert(std::is_trivially_copyable_v<Kernel> && std::is_trivially_destructible_v<Storage>);
  simt::launch(simt::Launch{.kernel_name = Kernel::kName,
                            .grid = grid,
                            .block = Kernel::kBlock,
                            .shared_bytes = shared_bytes<Kernel>(),
                            .shared_alignment = alignof(Storage),
                            .kernel = &kernel,
                            .run_thread = run_thread<Kernel>,
                            .run_recorded_thread = recorded_thread<Kernel>()});
}

#endif

/// What the report says of a launch; what only a GPU knows stays empty on the CPU.
template <class Kernel>
LaunchGeometry launch_geometry(dim3 grid) {
  constexpr dim3 block = Kernel::kBlock;
  LaunchGeometry geometry;
  geometry.grid[0] = grid.x, geometry.grid[1] = grid.y, geometry.grid[2] = grid.z;
  geometry.block[0] = static_cast<int>(block.x);
  geometry.block[1] = static_cast<int>(block.y);
  geometry.block[2] = static_cast<int>(block.z);
  geometry.shared_bytes = static_cast<std::int64_t>(shared_bytes<Kernel>());
#if defined(__CUDACC__)
  allow_shared_bytes<Kernel>();
  cudaFuncAttributes attributes{};
  CONVMISH_CHECK_CUDA(cudaFuncGetAttributes(&attributes, kernel_entry<Kernel>));
  int blocks = 0;
  CONVMISH_CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel_entry<Kernel>, threads_per_block<Kernel>(), shared_bytes<Kernel>()));
  geometry.registers = attributes.numRegs;
  geometry.local_bytes = static_cast<int>(attributes.localSizeBytes);
  geometry.blocks_per_multiprocessor = blocks;
#endif
  return geometry;
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
