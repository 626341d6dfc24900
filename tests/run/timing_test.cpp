// Timing on a device whose clock and clocks are scripted: nothing here depends on how busy the host is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "run/runner.hpp"
#include "tests/run/fake_device.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Shape kShape{.n = 1, .c = 2, .h = 5, .w = 5, .k = 2};
constexpr int kSamples = 8;

class TimingTest : public testing::Test {
 protected:
  TimingTest() {
    options_.run.fills = {Fill::normal};
    options_.run.timing.samples = kSamples;
  }

  std::vector<CaseResult> run(const std::vector<const Variant*>& variants) {
    return run_shape(device_, variants, kShape, options_,
                     {.step = [this](const Variant& variant, const Step& step) {
                       running_ = variant.name;
                       step_ = step.kind;
                       if (step.kind == Step::Kind::time) ++launches_[variant.name];
                     }});
  }
  CaseResult run_one(const Variant& variant) { return run({&variant}).front(); }

  /// A launch that throws `error` the second time it is timed, in the first round.
  template <class Error>
  Variant throws_when_timed(const Error& error) {
    return host_variant("thrower", [this, error](const Problem& problem, const LaunchArgs& args) {
      if (step_ == Step::Kind::time && launches_["thrower"] == 2) throw error;
      convolve_on_host(problem, args);
    });
  }

  FakeDevice device_;
  RunnerOptions options_;
  std::string running_;                  // the variant whose launch is timed
  Step::Kind step_ = Step::Kind::idle;   // what is done with it
  std::map<std::string, int> launches_;  // timed ones and the warm-up
};

TEST_F(TimingTest, LeavesNoTraceWhereTheDeviceTellsNothing) {
  const CaseResult result = run_one(host_variant("honest"));
  ASSERT_TRUE(result.time_ms) << result.detail;
  EXPECT_FALSE(result.clocks);
  EXPECT_FALSE(result.remeasured);
  EXPECT_THAT(result.noise, IsEmpty());
  EXPECT_THAT(result.remarks, IsEmpty());
}

TEST_F(TimingTest, TracesClocksWhereverTheyChange) {
  device_.clocks = [this] {
    const int rounds = launches_["honest"] - 1;  // less the warm-up
    return ClockState{
        .sm_mhz = rounds < 3 ? 1980 : 1950, .power_w = 500, .limits = {ClockLimit::sw_power_cap}};
  };
  const CaseResult result = run_one(host_variant("honest"));
  ASSERT_TRUE(result.clocks);
  EXPECT_THAT(result.clocks->before_sample, ElementsAre(0, 3));
  EXPECT_THAT(result.clocks->sm_mhz, ElementsAre(1980, 1950));
  EXPECT_THAT(result.noise, IsEmpty()) << "1.5 % and a power cap are no noise";
  EXPECT_FALSE(result.remeasured);
  EXPECT_EQ(launches_["honest"], 1 + kSamples);
}

TEST_F(TimingTest, MeasuresOnceMoreWhenClocksMoved) {
  device_.clocks = [this] {
    return ClockState{.sm_mhz = launches_["honest"] < 5 ? 1980 : 1755};  // settles within the first pass
  };
  device_.clock = [this](double) { return TimedLaunch{launches_["honest"] < 5 ? 1.0 : 2.0, std::nullopt}; };
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_EQ(launches_["honest"], 2 * (1 + kSamples));
  EXPECT_TRUE(result.remeasured);
  EXPECT_THAT(result.noise, IsEmpty());
  EXPECT_THAT(result.clocks->sm_mhz, ElementsAre(1755));
  EXPECT_EQ(result.time_ms->samples, std::vector<double>(kSamples, 2.0)) << "those of the second pass alone";
}

TEST_F(TimingTest, DoesNotBeginASecondPassWithAReadingOfTheFirst) {
  device_.gives_old_clocks = true;
  device_.clocks = [this] {
    ClockState state{.sm_mhz = 1980};
    if (launches_["honest"] <= 1 + kSamples) state.limits = {ClockLimit::hw_thermal};
    return state;
  };
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_TRUE(result.remeasured);
  EXPECT_THAT(result.noise, IsEmpty());
}

TEST_F(TimingTest, WarmsAGpuUpBeforeEachPass) {
  device_.looks.kind = DeviceKind::cuda;
  device_.clock = [](double) { return TimedLaunch{10.0, std::nullopt}; };
  const auto gpu_variant = [](const char* name) {
    Variant variant = host_variant(name);
    variant.device = DeviceKind::cuda;
    return variant;
  };
  const Variant one = gpu_variant("one"), other = gpu_variant("other");
  run({&one, &other});
  EXPECT_EQ(launches_["one"], 3 + kSamples) << "50 ms, of both together";
  EXPECT_EQ(launches_["other"], 3 + kSamples);

  device_.clocks = [] { return ClockState{.sm_mhz = 1980, .limits = {ClockLimit::hw_thermal}}; };
  run_one(gpu_variant("noisy"));
  EXPECT_EQ(launches_["noisy"], 2 * (5 + kSamples));

  device_.clocks = [] { return std::nullopt; };
  device_.clock = [](double) { return TimedLaunch{60.0, std::nullopt}; };
  run_one(gpu_variant("long"));
  EXPECT_EQ(launches_["long"], 1 + kSamples);
}

TEST_F(TimingTest, LetsAGpuRestForTheRemainderOfTheDutyCycle) {
  device_.clock = [](double) { return TimedLaunch{60.0, std::nullopt}; };
  Variant variant = host_variant("honest");
  EXPECT_FALSE(run_one(variant).time_ms->duty_cycle);
  EXPECT_EQ(device_.rested_ms, 0) << "a CPU needs none";

  device_.looks.kind = variant.device = DeviceKind::cuda;
  options_.run.timing.duty_cycle = 0.25;
  EXPECT_EQ(run_one(variant).time_ms->duty_cycle, 0.25);
  EXPECT_NEAR(device_.rested_ms, 3 * (1 + kSamples) * (60 + 1e-3 * Device::kLeadUs), 1e-6);

  device_.rested_ms = 0;
  options_.run.timing.duty_cycle = 1;
  run_one(variant);
  EXPECT_EQ(device_.rested_ms, 0);
}

TEST_F(TimingTest, SaysThatItIsStillNoisy) {
  device_.clocks = [this] { return ClockState{.sm_mhz = launches_["honest"] % 2 ? 1980 : 1755}; };
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_EQ(launches_["honest"], 2 * (1 + kSamples)) << "once more, not more often";
  EXPECT_TRUE(result.remeasured);
  EXPECT_EQ(result.noise, "the SM clock went from 1755 to 1980 MHz");
  EXPECT_EQ(result.verdict, Verdict::passed);
}

TEST_F(TimingTest, TakesHeatAndPowerSupplyForNoise) {
  device_.clocks = [] {
    return ClockState{.sm_mhz = 1980,
                      .limits = {ClockLimit::sw_power_cap, ClockLimit::hw_slowdown, ClockLimit::hw_thermal}};
  };
  EXPECT_EQ(run_one(host_variant("honest")).noise, "clocks were held down (hw_slowdown, hw_thermal)");
}

TEST_F(TimingTest, MeasuresOnlyTheNoisyOnesAgain) {
  // The clock moves in a round in which only the slower-converging variant is left.
  options_.run.timing = {.min_time_s = 1e-9, .max_time_s = 1000, .ci_half_width = 0.01};
  device_.clock = [this](double) {
    const int launch = launches_[running_];
    return TimedLaunch{running_ == "steady" || launch > 12 ? 1.0 : 1.0 + 0.1 * (launch % 2), std::nullopt};
  };
  device_.clocks = [this] { return ClockState{.sm_mhz = launches_["restless"] < 10 ? 1980 : 1500}; };
  const Variant steady = host_variant("steady"), restless = host_variant("restless");
  const auto results = run({&steady, &restless});
  EXPECT_FALSE(results[0].remeasured);
  EXPECT_TRUE(results[1].remeasured);
  EXPECT_THAT(results[1].noise, IsEmpty());
}

TEST_F(TimingTest, SaysThatAFixedCountDidNotConverge) {
  EXPECT_TRUE(run_one(host_variant("steady")).time_ms->converged);
  device_.clock = [this](double) { return TimedLaunch{launches_["restless"] % 2 ? 1.0 : 1.1, std::nullopt}; };
  const CaseResult result = run_one(host_variant("restless"));
  EXPECT_FALSE(result.time_ms->converged);
  EXPECT_EQ(result.time_ms->samples.size(), static_cast<std::size_t>(kSamples));
}

TEST_F(TimingTest, CallsANarrowIntervalConvergedAtTheTimeLimitToo) {
  options_.run.check = false;  // which takes longer than the launches
  // On a busy host the time limit may come before there are samples enough for an interval.
  const auto converges = [this](const Variant& variant) {
    for (double limit_s = 0.02;; limit_s *= 2) {
      options_.run.timing = {.min_time_s = limit_s, .max_time_s = limit_s};
      const TimeSummary time = run_one(variant).time_ms.value();
      if (time.ci95) return time.converged;
    }
  };
  // Launches so short that their sum stays below the min time.
  device_.clock = [](double) { return TimedLaunch{1e-6, std::nullopt}; };
  EXPECT_TRUE(converges(host_variant("short")));

  device_.clock = [this](double) {
    return TimedLaunch{launches_["restless"] % 2 ? 1e-6 : 3e-6, std::nullopt};
  };
  EXPECT_FALSE(converges(host_variant("restless")));
}

TEST_F(TimingTest, GivesTheHostALongerLeadUntilNoGapIsTimed) {
  std::vector<double> leads;
  device_.clock = [&](double lead_us) {
    leads.push_back(lead_us);
    return TimedLaunch{lead_us < 100 ? 9.0 : 1.0, 100.0};  // the host is busy for 100 us
  };
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_EQ(result.time_ms->samples, std::vector<double>(kSamples, 1.0));
  EXPECT_EQ(result.time_ms->host_gaps, 0);
  // The warm-up; the same lead again; then longer ones, of which the last is kept.
  leads.resize(6);
  EXPECT_THAT(leads, ElementsAre(30, 30, 30, 60, 120, 120));
}

TEST_F(TimingTest, SaysThatALaunchHoldsTheHostUp) {
  device_.clock = [](double) { return TimedLaunch{5.0, 5000.0}; };
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_EQ(result.time_ms->samples.size(), static_cast<std::size_t>(kSamples));
  EXPECT_EQ(result.time_ms->host_gaps, kSamples);
}

TEST_F(TimingTest, KeepsTheVerdictOfACaseThatCannotBeTimed) {
  device_.clocks = [] { return ClockState{.sm_mhz = 1980}; };
  const Variant hungry = throws_when_timed(OutOfMemory(4096, 1024)), honest = host_variant("honest");
  const auto results = run({&hungry, &honest});
  EXPECT_EQ(results[0].verdict, Verdict::passed);
  EXPECT_THAT(results[0].reason, IsEmpty());
  EXPECT_FALSE(results[0].time_ms);
  EXPECT_FALSE(results[0].clocks) << "those of no time";
  EXPECT_THAT(results[0].remarks, ElementsAre("not timed: needs 4096 bytes of device memory, 1024 are free"));
  ASSERT_TRUE(results[1].time_ms) << "the others go on";
  EXPECT_EQ(results[1].time_ms->samples.size(), static_cast<std::size_t>(kSamples));
}

TEST_F(TimingTest, SkipsWhatNeitherACheckNorATimingCouldRun) {
  options_.run.check = false;
  EXPECT_EQ(run_one(throws_when_timed(Unsupported("needs more"))).verdict, Verdict::skipped);
}

TEST_F(TimingTest, CrashesTheVariantThatThrowsAndNoOther) {
  const Variant thrower = throws_when_timed(std::runtime_error("no luck today")),
                honest = host_variant("honest");
  const auto results = run({&thrower, &honest});
  EXPECT_EQ(results[0].verdict, Verdict::crashed);
  EXPECT_EQ(results[0].detail, "when timed: no luck today");
  EXPECT_EQ(results[1].verdict, Verdict::passed);
  EXPECT_TRUE(results[1].time_ms);
}

TEST_F(TimingTest, DoesNotBlameTheOthersForWhatAThrowerDamaged) {
  const Variant vandal = host_variant("vandal", [this](const Problem& problem, const LaunchArgs& args) {
    convolve_on_host(problem, args);
    if (step_ != Step::Kind::time) return;
    const_cast<float*>(args.x)[7] += 1;
    throw std::runtime_error("no luck today");
  });
  const Variant honest = host_variant("honest");
  const auto results = run({&vandal, &honest});
  EXPECT_EQ(results[0].verdict, Verdict::crashed);
  EXPECT_EQ(results[1].verdict, Verdict::passed) << results[1].detail;
}

TEST_F(TimingTest, PassesOnThatTheMachineIsAtFault) {
  const Variant variant = throws_when_timed(EnvironmentError("a bit flipped"));
  EXPECT_THROW(run_one(variant), EnvironmentError);
}

TEST_F(TimingTest, TellsTwoRunsOfOneKernelAsATie) {
  // Both under the same noise and a drift that would part them, were one timed after the other.
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> noise(0, 0.02);
  int launches = 0;
  device_.clock = [&](double) { return TimedLaunch{(1 + 1e-3 * ++launches) * noise(random), std::nullopt}; };
  options_.run.timing.samples = 200;
  const Variant one = host_variant("one"), other = host_variant("other");
  const auto results = run({&one, &other});
  const auto &a = *results[0].time_ms->ci95, &b = *results[1].time_ms->ci95;
  EXPECT_LE(std::max(a[0], b[0]), std::min(a[1], b[1])) << "the intervals do not overlap";
}

}  // namespace
}  // namespace convmish
