// CUDA errors as exceptions that quote the failed call.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.hpp"

namespace convmish {

inline void check_cuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // clear it, where it is not sticky
  throw DeviceError(std::string(call) + ": " + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) +
                    ")");
}

}  // namespace convmish

#define CONVMISH_CHECK_CUDA(call) ::convmish::check_cuda((call), #call)
