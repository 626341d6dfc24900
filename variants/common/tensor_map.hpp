// Descriptions of tensors for the copy engine, which reads boxes of them and zeros where a box sticks out.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "gpu/check.hpp"

namespace convmish {

/// Whether the copy engine can read an fp32 tensor at that address, its rows of `columns` elements dense.
inline bool can_map(const float* tensor, std::int64_t columns) {
  constexpr std::int64_t kAlignment = 16;  // of the address, and of what lies between rows
  return reinterpret_cast<std::uintptr_t>(tensor) % kAlignment == 0 &&
         columns * sizeof(float) % kAlignment == 0;
}

/// A dense fp32 tensor, to be read in boxes. Extents are in elements, the innermost first. Throws
/// DeviceError.
inline CUtensorMap tensor_map(const float* tensor, const std::array<int, 4>& extents,
                              const std::array<int, 4>& box) {
  // By the runtime, so that nothing needs to be linked to the driver.
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CONVMISH_CHECK_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                         cudaEnableDefault, &found));
#else
    CONVMISH_CHECK_CUDA(
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess) throw DeviceError("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  constexpr cuuint32_t kDense[] = {1, 1, 1, 1};
  cuuint64_t sizes[4], strides[3];  // strides: bytes, of all but the innermost
  cuuint32_t box_sizes[4];
  std::ranges::copy(extents, sizes);
  std::ranges::copy(box, box_sizes);
  std::uint64_t stride = sizeof(float);
  for (int i = 0; i < 3; ++i) strides[i] = stride *= sizes[i];
  CUtensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, const_cast<float*>(tensor), sizes, strides, box_sizes,
             kDense, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(result)));
  return map;
}

}  // namespace convmish
