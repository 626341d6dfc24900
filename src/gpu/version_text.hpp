// A version of CUDA in words.
#pragma once

#include <string>

namespace convmish {

/// "13.0" of 13000, as CUDART_VERSION, cudaDriverGetVersion and cudaRuntimeGetVersion count.
inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace convmish
