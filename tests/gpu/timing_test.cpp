// The clock of a real GPU, and what it can tell apart.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "core/rank_test.hpp"
#include "core/registry.hpp"
#include "run/calibration.hpp"
#include "run/runner.hpp"
#include "tests/gpu/gpu_fixture.hpp"

namespace convmish {
namespace {

class GpuTimingTest : public GpuTest {};

TEST_F(GpuTimingTest, TellsTwoRunsOfOneKernelAsATie) {
  const Variant one = *select_variants(Registry::instance(), DeviceKind::cuda, {"naive"}).front();
  Variant other = one;
  other.name = "naive_again";
  RunnerOptions options;
  options.run.fills = {Fill::normal};
  options.run.timing.samples = 500;  // a fixed count: stopping where the interval is narrow would bias it
  const auto results =
      run_shape(device(), {&one, &other}, {.n = 8, .c = 16, .h = 66, .w = 66, .k = 32}, options);
  ASSERT_TRUE(results[0].time_ms && results[1].time_ms) << results[0].detail << results[1].detail;
  const auto &a = *results[0].time_ms, &b = *results[1].time_ms;
  const double p = mann_whitney(a.samples, b.samples).p;
  std::printf("one kernel under two names: %.5f and %.5f ms, p = %.3g\n", a.median, b.median, p);
  EXPECT_GT(p, 1e-6) << "by chance once in a million runs";
}

TEST_F(GpuTimingTest, ALongEnoughLeadHidesTheHost) {
  const auto held_up_host = [&] {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(500)) {
    }
    device().launch_nothing();
  };
  device().time_ms(held_up_host, Cache::hot);  // loads the kernel
  const TimedLaunch behind = device().time_launch(held_up_host, Cache::hot, 30);
  EXPECT_GT(behind.enqueue_us, 30);
  EXPECT_GT(behind.ms, 0.4) << "what the device waited is timed";
  const TimedLaunch ahead = device().time_launch(held_up_host, Cache::hot, 5000);
  EXPECT_LT(ahead.enqueue_us, 5000);
  EXPECT_LT(ahead.ms, 0.1);
}

TEST_F(GpuTimingTest, CalibratesItsClock) {
  const Calibration found = calibrate(device());
  ASSERT_TRUE(found.resolution_ms && found.enqueue_us);
  std::printf("resolution %.3f us, empty launch %.3f us, enqueued in %.3f us, copy of %lld bytes %.4f ms\n",
              1e3 * *found.resolution_ms, 1e3 * found.empty_launch_ms.median, found.enqueue_us->median,
              static_cast<long long>(found.copy_bytes), found.copy_ms.median);
  EXPECT_LT(*found.resolution_ms, found.empty_launch_ms.median);
  EXPECT_LT(found.empty_launch_ms.median, 1e-3 * Device::kLeadUs) << "the lead itself is timed";
}

TEST_F(GpuTimingTest, TellsItsClocksWhereThereIsNvml) {
  const auto state = device().clock_state({});
  if (!state) GTEST_SKIP() << "NVML cannot be loaded, or does not know the GPU";
  ASSERT_TRUE(state->sm_mhz);
  EXPECT_GT(*state->sm_mhz, 0);
}

}  // namespace
}  // namespace convmish
