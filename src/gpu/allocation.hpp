// Device memory that frees itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/error.hpp"
#include "gpu/check.hpp"

namespace convmish {

/// Throws OutOfMemory with the bytes that are free.
class Allocation {
 public:
  explicit Allocation(std::size_t bytes) {
    const cudaError_t error = cudaMalloc(&data_, bytes);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      std::size_t available = 0, total = 0;
      CONVMISH_CHECK_CUDA(cudaMemGetInfo(&available, &total));
      throw OutOfMemory(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(available));
    }
    check_cuda(error, "cudaMalloc");
  }
  ~Allocation() { cudaFree(data_); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace convmish
