// The rates that a GPU's tensor cores reach in matrix products, by cuBLAS.
#pragma once

#include <cuda_runtime_api.h>

#include "core/ceiling.hpp"
#include "core/variant.hpp"

namespace convmish::gpu {

/// The first compute capability, as in DeviceInfo, with tensor cores.
inline constexpr int kVolta = 70;

/// Sets the tensor rates of `measured` that `device` has, dense and with fp32 accumulation; or says in `gap`
/// why not: cuBLAS is looked for when this is called, and the tool works without it. Takes up to 1 GiB, or
/// half of what is free. Throws OutOfMemory.
void measure_matrix_rates(const DeviceInfo& device, cudaStream_t stream, MeasuredCeilings& measured);

}  // namespace convmish::gpu
