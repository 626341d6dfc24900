// Device memory that a search uses and gives back; what a plan keeps comes from PlanMemory.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/check.hpp"

namespace convmish {

struct CudaFree {
  void operator()(void* data) const { (void)cudaFree(data); }
};
using DeviceMemory = std::unique_ptr<void, CudaFree>;

/// Null where there is no room.
inline DeviceMemory allocate_device_memory(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // not sticky
    return nullptr;
  }
  check_cuda(error, "cudaMalloc");
  return DeviceMemory(data);
}

}  // namespace convmish
