// Why CUDA gives no device, in words that say what to do.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace convmish {

/// Of what cudaGetDeviceCount or cudaSetDevice returned; CUDA's own words where there are no better ones.
std::string why_unusable(cudaError_t error);

}  // namespace convmish
