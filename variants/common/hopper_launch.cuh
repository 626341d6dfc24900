// Launches of Hopper kernels with what the <<<>>> syntax does not say: clusters, and an early start.
#pragma once

#include <utility>

#include "core/variant.hpp"
#include "gpu/check.hpp"

namespace convmish::hopper {

/// Launches a kernel that may start before the one before it in the stream has ended, which hides its launch.
/// It must call ptx::wait_for_kernel_before() before it touches what that one reads or writes.
template <class... Parameters, class... Arguments>
void launch_after_start(void (*kernel)(Parameters...), unsigned blocks, int threads, std::size_t shared_bytes,
                        int cluster, Stream stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  config.attrs = attributes;
  config.numAttrs = 2;
  CONVMISH_CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

}  // namespace convmish::hopper
