// Several floats an instruction into shared memory and out of it.
//
// copy_async() starts a copy from global memory that does not pass through registers where the GPU can do so
// (cp.async, sm_80 and up); elsewhere it is a load and a store, done when it returns. Either way the copy may
// be read after wait_for_copies() and a __syncthreads(), so that a kernel's main loop is the same for both.
//
// Element: float, or its recorded form on the CPU device (kernel.hpp).
#pragma once

#include <type_traits>

#include "variants/common/kernel.hpp"

#if defined(__CUDACC__)
#include <cuda_pipeline_primitives.h>
#endif

namespace convmish::inline CONVMISH_KERNEL_TARGET {

/// kWidth elements from `from` on, which is aligned to all of them.
template <unsigned kWidth, class Element>
__device__ __forceinline__ FloatVector<kWidth> load_vector(const Element* from) {
  if constexpr (std::is_same_v<Element, float>) {
    return *reinterpret_cast<const FloatVector<kWidth>*>(from);
  } else {
    return from->template load_as<FloatVector<kWidth>>();
  }
}

/// kWidth floats; both addresses are aligned to all of them. What the calling thread copies at once other
/// threads see after its wait_for_copies() and a barrier.
template <unsigned kWidth, class Element>
__device__ __forceinline__ void copy_async(Element* to, const float* from) {
#if defined(__CUDACC__)
  __pipeline_memcpy_async(to, from, sizeof(FloatVector<kWidth>));
#else
  const auto& vector = *reinterpret_cast<const FloatVector<kWidth>*>(from);
  if constexpr (std::is_same_v<Element, float>) {
    *reinterpret_cast<FloatVector<kWidth>*>(to) = vector;
  } else {
    to->store_as(vector);
  }
#endif
}

/// Until all copies that this thread has started are done.
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDACC__)
  __pipeline_commit();
  __pipeline_wait_prior(0);
#endif
}

}  // namespace convmish::inline CONVMISH_KERNEL_TARGET
