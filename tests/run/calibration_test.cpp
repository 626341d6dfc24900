#include "run/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/run/fake_device.hpp"

namespace convmish {
namespace {

TEST(Calibration, FindsTheStepOfTheClockAndTheSpeedOfACopy) {
  FakeDevice device;
  device.free = std::int64_t{4} << 20;  // for copies of a megabyte
  int launches = 0;
  // 2 us and a multiple of a step of 0.25 us.
  device.clock = [&](double) { return TimedLaunch{2e-3 + 0.25e-3 * (++launches * 7 % 5), std::nullopt}; };
  const Calibration found = calibrate(device);
  ASSERT_TRUE(found.resolution_ms);
  EXPECT_NEAR(*found.resolution_ms, 0.25e-3, 1e-12);
  EXPECT_NEAR(found.empty_launch_ms.median, 2.5e-3, 1e-12);
  EXPECT_GT(found.copy_bytes, 0);
  EXPECT_NEAR(found.copy_ms.min, 2e-3, 1e-12);
  EXPECT_FALSE(found.enqueue_us) << "the host does the work itself";
}

TEST(Calibration, CountsLaunchesThatTheHostEnqueuesTooSlowly) {
  FakeDevice device;
  device.free = std::int64_t{4} << 20;  // for copies of a megabyte
  int launches = 0;
  device.clock = [&](double lead_us) {
    return TimedLaunch{2e-3, ++launches % 4 == 0 ? lead_us + 1 : lead_us};
  };
  const Calibration found = calibrate(device);
  ASSERT_TRUE(found.enqueue_us);
  EXPECT_EQ(found.enqueue_us->samples.size(), 1000u);
  EXPECT_EQ(found.behind_the_lead, 250);
  EXPECT_EQ(found.enqueue_us->median, Device::kLeadUs);
  EXPECT_FALSE(found.resolution_ms) << "all times are equal";
}

TEST(Calibration, SaysThatMemoryDoesNotSuffice) {
  FakeDevice device;
  device.free = 100;
  EXPECT_THROW(calibrate(device), OutOfMemory);
}

}  // namespace
}  // namespace convmish
