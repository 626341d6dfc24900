// sm_90a instructions that CUDA C++ does not name, one function each, in the words of the PTX manual.
//
// Addresses of shared memory are 32-bit, as PTX takes them. Waits spin inside the instruction
// (mbarrier.try_wait suspends the thread for a while), so no back-off is needed around them.
#pragma once

#include <cstdint>

namespace convmish::ptx {

using SharedAddress = std::uint32_t;

__device__ __forceinline__ SharedAddress shared_address(const void* pointer) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

// --- mbarrier --------------------------------------------------------------------------------------------

__device__ __forceinline__ void mbarrier_init(SharedAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

/// Makes initialised barriers visible to the other thread blocks of the cluster and to the copy engine.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives `count` times.
__device__ __forceinline__ void mbarrier_arrive(SharedAddress barrier, int count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/// Arrives, and makes the phase wait for `bytes` more bytes from the copy engine.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(SharedAddress barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives at a barrier of any thread block of the cluster; `barrier` comes from map_to_rank. Orders this
/// thread's accesses within its thread block only: release at cluster scope would be a fence at device scope,
/// which waits for all global stores in flight. So it may announce that reads of shared memory are done, but
/// publish no writes.
__device__ __forceinline__ void mbarrier_arrive_cluster(SharedAddress barrier, int count = 1) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/// Waits until the phase of that parity has completed. What the copy engine wrote before completing on the
/// barrier is then visible, from whichever thread block it came.
__device__ __forceinline__ void mbarrier_wait(SharedAddress barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nWAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra WAIT;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- named barriers, warpgroup registers, clusters -------------------------------------------------------

__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// True in one thread of a warp that is all here. The compiler knows it to be one: for a thread chosen by its
/// number it wraps each bulk copy in a loop over the warp's threads.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile("{\n.reg .pred elected;\nelect.sync _|elected, 0xffffffff;\nselp.u32 %0, 1, 0, elected;\n}"
               : "=r"(elected));
  return elected != 0;
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/// The address at which thread block `rank` of the cluster has what this one has at `address`.
__device__ __forceinline__ SharedAddress map_to_rank(SharedAddress address, std::uint32_t rank) {
  SharedAddress remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

/// In a kernel that launch_after_start() launched: waits for the kernel before it in the stream, and sees
/// what that wrote. Otherwise, and before sm_90, nothing.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the kernel after this one start, if launch_after_start() launches it, once all thread blocks have
/// said so or have ended.
__device__ __forceinline__ void start_kernel_after() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// --- memory ----------------------------------------------------------------------------------------------

/// Orders this thread's ordinary writes to shared memory before later reads by wgmma and the copy engine.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Shared memory of this thread block to that of another; completes on a barrier there.
__device__ __forceinline__ void bulk_copy_to_cluster(SharedAddress destination, SharedAddress source,
                                                     std::uint32_t bytes, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          destination),
      "r"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

/// L2 cache policies, as createpolicy.fractional makes them of fraction 1: constants, because then they take
/// no registers. First to leave the L2, for what is read once; last, for lines that fill up bit by bit.
inline constexpr std::uint64_t kEvictFirst = 0x12F0000000000000u, kEvictLast = 0x14F0000000000000u;

/// Global to shared memory; addresses and size multiples of 16.
__device__ __forceinline__ void bulk_copy_from_global(SharedAddress destination, const void* source,
                                                      std::uint32_t bytes, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

/// A box of the tensor that `map` describes, from `at` (innermost coordinate first) on; zeros beyond its
/// ends. `map` lies in a kernel's __grid_constant__ parameters. `destination` is a multiple of 128.
template <class TensorMap>
__device__ __forceinline__ void tensor_copy_from_global(SharedAddress destination, const TensorMap& map,
                                                        const int (&at)[4], SharedAddress barrier,
                                                        std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(destination),
      "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(barrier), "l"(policy)
      : "memory");
}

/// kFloats, 1 or 2, from global to shared memory, or zeros: past the registers, aligned to their size.
template <int kFloats>
__device__ __forceinline__ void async_copy_or_zero(SharedAddress destination, const float* source,
                                                   bool copy) {
  constexpr int kBytes = kFloats * sizeof(float);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(destination), "l"(source), "n"(kBytes),
               "r"(copy ? kBytes : 0)
               : "memory");
}

/// Arrives once this thread's async copies so far are complete.
__device__ __forceinline__ void async_copy_arrive(SharedAddress barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ float load_global_once(const float* source, std::uint64_t policy) {
  float value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;"
               : "=f"(value)
               : "l"(source), "l"(policy));
  return value;
}

__device__ __forceinline__ void load_global_once(float (&values)[1], const float* source,
                                                 std::uint64_t policy) {
  values[0] = load_global_once(source, policy);
}

__device__ __forceinline__ void load_global_once(float (&values)[4], const float* source,
                                                 std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(source), "l"(policy));
}

__device__ __forceinline__ void store_global(float* destination, float2 v, std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v2.f32 [%0], {%1, %2}, %3;" ::"l"(destination), "f"(v.x), "f"(v.y),
               "l"(policy)
               : "memory");
}

__device__ __forceinline__ void store_global(float* destination, float v, std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(destination), "f"(v), "l"(policy)
               : "memory");
}

__device__ __forceinline__ void store_global(float* destination, float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(destination), "f"(v.x), "f"(v.y) : "memory");
}

__device__ __forceinline__ void store_global(float* destination, float v) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(destination), "f"(v) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress destination, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(destination), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress destination, std::int64_t v) {
  asm volatile("st.shared.s64 [%0], %1;" ::"r"(destination), "l"(v) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress destination, float2 v) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(destination), "f"(v.x), "f"(v.y) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress destination, int v) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(destination), "r"(v) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress destination, std::uint16_t v) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(destination), "h"(v) : "memory");
}

__device__ __forceinline__ int load_shared_int(SharedAddress source) {
  int v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(source) : "memory");
  return v;
}

__device__ __forceinline__ float load_shared_float(SharedAddress source) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(source) : "memory");
  return v;
}

__device__ __forceinline__ float2 load_shared_float2(SharedAddress source) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(source) : "memory");
  return v;
}

__device__ __forceinline__ std::int64_t load_shared_s64(SharedAddress source) {
  std::int64_t v;
  asm volatile("ld.shared.s64 %0, [%1];" : "=l"(v) : "r"(source) : "memory");
  return v;
}

// --- wgmma -----------------------------------------------------------------------------------------------

/// How wgmma finds core matrices (8 rows of 16 bytes) in shared memory.
enum class Swizzle : std::uint64_t { none = 0, b128 = 1 };

/// A matrix descriptor. K-major operands: without swizzle `leading_bytes` lies between the two k-halves of a
/// step and `stride_bytes` between groups of 8 rows; with the 128-byte swizzle only the stride counts.
__device__ __forceinline__ std::uint64_t matrix_descriptor(SharedAddress address, std::uint32_t leading_bytes,
                                                           std::uint32_t stride_bytes, Swizzle swizzle) {
  return std::uint64_t{(address & 0x3FFFFu) >> 4} | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{stride_bytes >> 4} << 32 | static_cast<std::uint64_t>(swizzle) << 62;
}

/// What moving the start address by `bytes` adds to a descriptor.
__device__ __forceinline__ constexpr std::uint64_t descriptor_step(std::uint32_t bytes) {
  return bytes >> 4;
}

/// Orders register accesses before the warpgroup's next wgmma.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `kPending` groups of this warpgroup are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The lists of the first so many sums in an asm statement, each of the one before and some more: their places
// in its text, and their operands.
#define CONVMISH_PLACES_32                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CONVMISH_SUMS_32                                                                                    \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),           \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),            \
      "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),            \
      "+f"(d[30]), "+f"(d[31])
#define CONVMISH_PLACES_44 CONVMISH_PLACES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43"
#define CONVMISH_SUMS_44                                                                          \
  CONVMISH_SUMS_32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), \
      "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define CONVMISH_PLACES_52 CONVMISH_PLACES_44 ", %44, %45, %46, %47, %48, %49, %50, %51"
#define CONVMISH_SUMS_52                                                                          \
  CONVMISH_SUMS_44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), \
      "+f"(d[50]), "+f"(d[51])
#define CONVMISH_PLACES_56 CONVMISH_PLACES_52 ", %52, %53, %54, %55"
#define CONVMISH_SUMS_56 CONVMISH_SUMS_52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define CONVMISH_PLACES_64 CONVMISH_PLACES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define CONVMISH_SUMS_64                                                                          \
  CONVMISH_SUMS_56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), \
      "+f"(d[62]), "+f"(d[63])
#define CONVMISH_PLACES_92                                                           \
  CONVMISH_PLACES_64                                                                 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91"
#define CONVMISH_SUMS_92                                                                          \
  CONVMISH_SUMS_64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
      "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),  \
      "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),  \
      "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
/// wgmma of `pixels` columns; count, a, b, accumulate: the number of sums and of the next operands.
#define CONVMISH_WGMMA(pixels, count, a_at, b_at, accumulate_at)                                       \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #accumulate_at                   \
               ", 0;\n"                                                                                \
               "wgmma.mma_async.sync.aligned.m64n" #pixels "k16.f32.f16.f16 {" CONVMISH_PLACES_##count \
               "}, %" #a_at ", %" #b_at ", accumulate, 1, 1, 0, 0;\n}"                                 \
               : CONVMISH_SUMS_##count                                                                 \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))

/// d[64 x kPixels] (+)= a[64 x 16] b[16 x kPixels], fp16 operands K-major in shared memory, fp32 sums.
template <int kPixels>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[kPixels / 2], std::uint64_t a, std::uint64_t b,
                                             bool accumulate) {
  if constexpr (kPixels == 64)
    CONVMISH_WGMMA(64, 32, 32, 33, 34);
  else if constexpr (kPixels == 88)
    CONVMISH_WGMMA(88, 44, 44, 45, 46);
  else if constexpr (kPixels == 104)
    CONVMISH_WGMMA(104, 52, 52, 53, 54);
  else if constexpr (kPixels == 112)
    CONVMISH_WGMMA(112, 56, 56, 57, 58);
  else if constexpr (kPixels == 128)
    CONVMISH_WGMMA(128, 64, 64, 65, 66);
  else if constexpr (kPixels == 184)
    CONVMISH_WGMMA(184, 92, 92, 93, 94);
  else
    static_assert(kPixels == 0, "not one of the accumulator shapes that are wrapped");
}

#undef CONVMISH_WGMMA
#undef CONVMISH_PLACES_32
#undef CONVMISH_SUMS_32
#undef CONVMISH_PLACES_44
#undef CONVMISH_SUMS_44
#undef CONVMISH_PLACES_52
#undef CONVMISH_SUMS_52
#undef CONVMISH_PLACES_56
#undef CONVMISH_SUMS_56
#undef CONVMISH_PLACES_64
#undef CONVMISH_SUMS_64
#undef CONVMISH_PLACES_92
#undef CONVMISH_SUMS_92

// --- special functions: 1 instruction each, subnormals flushed -------------------------------------------

/// 2^x, relative error below 2^-22.
__device__ __forceinline__ float ex2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / x, relative error below 2^-23.
__device__ __forceinline__ float rcp_approx(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace convmish::ptx
