// Instructions of the tensor cores from sm_80 on, and of the copies that feed them, one function each, in the
// words of the PTX manual.
#pragma once

#include "variants/common/hopper_ptx.cuh"

namespace convmish::ptx {

/// threadIdx.x, in one dimension, read where this stands.
__device__ __forceinline__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

/// Four matrices of 8 rows of 8 halves, one after the other in `d`. Lane l gives the address of row l % 8 of
/// matrix l / 8; it gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&d)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row)
               : "memory");
}

__device__ __forceinline__ void load_shared(std::uint32_t (&d)[4], SharedAddress source) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(source)
               : "memory");
}

/// d[16 x 8] += a[16 x 16] b[16 x 8], fp16 operands, fp32 sums. Lane l holds, with g = l / 4 and t = l % 4:
/// a[0], a[2] row g and a[1], a[3] row g + 8, columns 2 t, 2 t + 1 (a[0], a[1]) and those 8 on (a[2], a[3]);
/// b[0], b[1] the same k of column g; d[0], d[1] columns 2 t, 2 t + 1 of row g, d[2], d[3] of row g + 8.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// With a hint to keep what is written in the L2 until its neighbours are written too.
template <class Value>
__device__ __forceinline__ void store_global_kept(float* destination, Value v) {
#if __CUDA_ARCH__ >= 900
  store_global(destination, v, kEvictLast);
#else
  store_global(destination, v);
#endif
}

/// 16 bytes, past the registers and the L1.
__device__ __forceinline__ void copy_async(SharedAddress destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(destination), "l"(source) : "memory");
}

/// Ends a group of this thread's copies.
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most kGroups groups of this thread's copies, the last ones, are under way.
template <int kGroups>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

__device__ __forceinline__ void copy_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// As mbarrier_wait(), from sm_80 on.
__device__ __forceinline__ void mbarrier_poll(SharedAddress barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  mbarrier_wait(barrier, parity);
#else
  asm volatile(
      "{\n.reg .pred done;\nWAIT:\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra WAIT;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#endif
}

}  // namespace convmish::ptx
