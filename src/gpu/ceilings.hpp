// Measures the rates that a GPU reaches.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/ceiling.hpp"
#include "core/variant.hpp"

namespace convmish::gpu {

/// Takes about a second and, while it runs, up to 2 GiB, or half of what is free. Throws OutOfMemory or
/// DeviceError.
MeasuredCeilings measure_ceilings(const DeviceInfo& device, cudaStream_t stream);

/// Which rates of `device` a build without cuBLAS cannot measure, as a gap; empty where it can measure all.
std::string ceilings_gap_of_build(const DeviceInfo& device);

}  // namespace convmish::gpu
