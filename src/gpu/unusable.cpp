#include "gpu/unusable.hpp"

#include <string>

#include "gpu/version_text.hpp"

namespace convmish {

std::string why_unusable(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:  // also where there is none at all
      return "no NVIDIA driver is installed, or one older than CUDA " + version_text(CUDART_VERSION) +
             " needs";
    case cudaErrorNoDevice:
      return "the driver shows none (CUDA_VISIBLE_DEVICES may hide it)";
    case cudaErrorDevicesUnavailable:
      return "it is busy: another process holds it for itself alone (nvidia-smi shows the compute mode)";
    case cudaErrorMemoryAllocation:
      return "its memory is full (nvidia-smi shows which processes use it)";
    default:
      return cudaGetErrorString(error);
  }
}

}  // namespace convmish
