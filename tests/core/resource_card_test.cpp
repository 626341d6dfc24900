#include "core/resource_card.hpp"

#include <gtest/gtest.h>

namespace convmish {
namespace {

constexpr DeviceInfo kH200{.multiprocessors = 132, .max_threads_per_multiprocessor = 2048};

TEST(Occupancy, TellsWarpsTheirShareAndWaves) {
  const LaunchGeometry geometry{.grid = {256, 128, 64}, .block = {16, 16, 1}, .blocks_per_multiprocessor = 4};
  const auto filled = occupancy(geometry, kH200);
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->warps, 32);
  EXPECT_DOUBLE_EQ(filled->share, 0.5);
  EXPECT_DOUBLE_EQ(filled->waves, 256.0 * 128 * 64 / (132 * 4));
}

TEST(Occupancy, CountsABlocksLastWarpWhole) {
  const LaunchGeometry geometry{.grid = {66, 1, 1}, .block = {33, 1, 1}, .blocks_per_multiprocessor = 1};
  const auto filled = occupancy(geometry, kH200);
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->warps, 2);
  EXPECT_DOUBLE_EQ(filled->waves, 0.5);
}

TEST(Occupancy, IsNotKnownWithoutAGpusFigures) {
  EXPECT_FALSE(occupancy(LaunchGeometry{.block = {256, 1, 1}}, kH200));
  EXPECT_FALSE(occupancy(LaunchGeometry{.blocks_per_multiprocessor = 0}, kH200));
  EXPECT_FALSE(occupancy(LaunchGeometry{.blocks_per_multiprocessor = 4}, DeviceInfo{.multiprocessors = 8}));
}

}  // namespace
}  // namespace convmish
