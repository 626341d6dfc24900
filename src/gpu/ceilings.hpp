// Measures the rates that a GPU reaches.
#pragma once

#include <cuda_runtime_api.h>

#include "core/ceiling.hpp"
#include "core/variant.hpp"

namespace convmish::gpu {

/// Takes about a second and, while it runs, up to 2 GiB, or half of what is free. Throws OutOfMemory or
/// DeviceError.
MeasuredCeilings measure_ceilings(const DeviceInfo& device, cudaStream_t stream);

}  // namespace convmish::gpu
