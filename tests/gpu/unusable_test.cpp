// What a machine that lacks something is told. These need CUDA to build, but no GPU.
#include "gpu/unusable.hpp"

#include <gtest/gtest.h>

#include "core/registry.hpp"

namespace convmish {
namespace {

TEST(Unusable, SaysWhatToDoAboutAGpu) {
  EXPECT_NE(why_unusable(cudaErrorInsufficientDriver).find("no NVIDIA driver"), std::string::npos);
  EXPECT_NE(why_unusable(cudaErrorNoDevice).find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  EXPECT_NE(why_unusable(cudaErrorDevicesUnavailable).find("busy"), std::string::npos);
  EXPECT_NE(why_unusable(cudaErrorMemoryAllocation).find("memory is full"), std::string::npos);
  EXPECT_EQ(why_unusable(cudaErrorSystemNotReady), cudaGetErrorString(cudaErrorSystemNotReady));
}

/// Run with an empty file in the place of cuDNN's library.
TEST(Unusable, CudnnThatCannotBeLoadedTakesItsVariantsAlone) {
  const DeviceInfo gpu{.kind = DeviceKind::cuda, .compute_major = 9};
  int with_cudnn = 0;
  for (const Variant& variant : Registry::instance().variants()) {
    if (variant.device != DeviceKind::cuda) continue;
    const auto why =
        variant.supports ? variant.supports({.n = 1, .c = 8, .h = 9, .w = 9, .k = 8}, gpu) : std::nullopt;
    const bool uses_cudnn = variant.name.starts_with("cudnn_");
    with_cudnn += uses_cudnn;
    EXPECT_EQ(why && why->starts_with("cuDNN cannot be loaded: "), uses_cudnn) << variant.name;
    if (uses_cudnn) {
      EXPECT_NE(why.value_or("").find("LD_LIBRARY_PATH"), std::string::npos) << variant.name;
    }
  }
  if (with_cudnn == 0) GTEST_SKIP() << "built without cuDNN";
}

}  // namespace
}  // namespace convmish
