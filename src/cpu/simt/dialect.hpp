// What a kernel's source finds on the CPU where nvcc would give it CUDA: the names of the dialect of
// variants/common/kernel.hpp, no more of CUDA than its kernels use.
#pragma once

#include <cstdint>
#include <source_location>

#define __device__
#define __forceinline__ inline __attribute__((always_inline))

namespace convmish {

namespace simt {

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// Where the running kernel thread waits until every thread of its block that has not ended waits too.
/// Throws to leave the kernel when another thread of the block has failed.
void wait_at_barrier(const std::source_location& where);

}  // namespace simt

// Set by the executor before it lets a kernel thread run; a kernel thread never changes its OS thread.
inline constinit thread_local simt::Index3 threadIdx{}, blockIdx{};

inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  simt::wait_at_barrier(where);
}

template <class T>
__forceinline__ T __ldg(const T* address) {
  return *address;
}

/// The upper half of the 128-bit product.
__forceinline__ std::uint64_t __umul64hi(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

}  // namespace convmish
