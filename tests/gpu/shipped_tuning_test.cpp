// The tuning table that the tool ships names configurations of CUDA variants. Needs CUDA to build, but no
// GPU.
#include <gtest/gtest.h>

#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "core/tuning_table.hpp"

namespace convmish {
namespace {

TEST(ShippedTuningTable, NamesConfigurationsThatThereAre) {
  const DeviceInfo h200{.kind = DeviceKind::cuda, .name = "NVIDIA H200"};
  EXPECT_NO_THROW(shipped_tuning_table().check(h200, Registry::instance()));
  const auto tuned = select_variants(Registry::instance(), DeviceKind::cuda, {"register_blocked", "mma_*"});
  ASSERT_EQ(tuned.size(), 3u);
  for (const Variant* const variant : tuned)
    EXPECT_TRUE(shipped_tuning_table().find(h200, *variant, parse_shape("n64c64h256w256k128")))
        << variant->name;
}

}  // namespace
}  // namespace convmish
