// Crashes and hangs stay with the case that caused them.
#include "worker/worker.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

using namespace std::chrono_literals;

constexpr Shape kShape{.n = 1, .c = 3, .h = 6, .w = 7, .k = 2};

OpenedDevice open_cpu() {
  return {make_cpu_device(), "asked for"};
}

RunnerOptions quick() {
  RunnerOptions options;
  options.run.fills = {Fill::kernelbench, Fill::normal};
  options.run.timing.samples = 6;
  return options;
}

TEST(Worker, ReportsItsDevice) {
  const Worker worker(open_cpu, quick(), 5s);
  EXPECT_EQ(worker.device().environment.device.kind, DeviceKind::cpu);
  EXPECT_EQ(worker.device().reason, "asked for");
  EXPECT_GT(worker.device().free_bytes, 0);
}

TEST(Worker, ThrowsHereWhatOpeningThrewThere) {
  const auto no_gpu = []() -> OpenedDevice { throw EnvironmentError("no GPU today"); };
  try {
    const Worker worker(no_gpu, quick(), 5s);
    FAIL() << "the device was not there";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "no GPU today");
  }
}

TEST(Supervisor, GivesACrashToItsCaseAlone) {
  const Variant first = host_variant("first"), last = host_variant("last");
  const Variant crasher = host_variant("crasher", [](const Problem&, const LaunchArgs&) {
    std::signal(SIGSEGV, SIG_DFL);  // not the sanitizer's report
    std::raise(SIGSEGV);
  });
  Supervisor supervisor(open_cpu, quick(), 20s);
  for (int round = 0; round < 2; ++round) {  // the next shape gets a fresh worker and a fresh chance
    const auto results = supervisor.run(kShape, {&first, &crasher, &last}, {});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].verdict, Verdict::passed) << results[0].detail;
    EXPECT_EQ(results[1].variant, "crasher");
    EXPECT_EQ(results[1].verdict, Verdict::crashed);
    EXPECT_EQ(results[1].reason, "process_died");
    EXPECT_EQ(results[1].detail, "killed by SIGSEGV (Segmentation fault) during: check kernelbench");
    EXPECT_EQ(results[2].verdict, Verdict::passed) << results[2].detail;
  }
}

TEST(Supervisor, StopsAHangAtItsTimeLimit) {
  const Variant hanger = host_variant("hanger", [](const Problem&, const LaunchArgs&) {
    while (true) std::this_thread::sleep_for(1s);
  });
  const Variant honest = host_variant("honest");
  Supervisor supervisor(open_cpu, quick(), 1s);
  const auto results = supervisor.run(kShape, {&hanger, &honest}, {});
  EXPECT_EQ(results[0].verdict, Verdict::timed_out);
  EXPECT_EQ(results[0].reason, "time_limit");
  EXPECT_EQ(results[1].verdict, Verdict::passed) << results[1].detail;
}

TEST(Supervisor, CountsAStepsTimeAnewForEachStep) {
  // Every launch takes a good part of the limit; all together take many times the limit.
  const Variant slow = host_variant("slow", [](const Problem& problem, const LaunchArgs& args) {
    std::this_thread::sleep_for(150ms);
    convolve_on_host(problem, args);
  });
  Supervisor supervisor(open_cpu, quick(), 1s);
  EXPECT_EQ(supervisor.run(kShape, {&slow}, {}).front().verdict, Verdict::passed);
}

TEST(Supervisor, AsksForCeilingsOnceWhateverCrashes) {
  const auto open = [] {
    OpenedDevice opened = open_cpu();
    opened.ceilings = [](Device&) {  // differs from process to process
      return DeviceCeilings{.measured = {.rates = {.dram_bytes = ::getpid()}}, .measured_at = {}};
    };
    return opened;
  };
  const Variant quitter = host_variant("quitter", [](const Problem&, const LaunchArgs&) { std::_Exit(0); });
  const Variant honest = host_variant("honest");
  Supervisor supervisor(open, quick(), 20s);
  ASSERT_TRUE(supervisor.device().ceilings);
  const Ceilings first = supervisor.device().ceilings->measured.rates;
  EXPECT_NE(*first.dram_bytes, ::getpid()) << "the device was asked by the process that must not touch it";
  const auto results = supervisor.run(kShape, {&quitter, &honest}, {});
  EXPECT_EQ(results[0].verdict, Verdict::crashed);
  ASSERT_TRUE(results[1].floor_ms) << results[1].detail;
  EXPECT_EQ(*results[1].floor_ms, 1e3 * kShape.least_bytes() / *first.dram_bytes);
}

TEST(Worker, AsksForNoCeilingsWhereNothingIsTimed) {
  const auto open = []() -> OpenedDevice {
    return {make_cpu_device(), "asked for",
            [](Device&) -> DeviceCeilings { throw std::logic_error("asked"); }};
  };
  RunnerOptions options = quick();
  options.run.time = false;
  EXPECT_FALSE(Worker(open, options, 5s).device().ceilings);
}

TEST(Supervisor, TakesAnEndOfTheProcessForACrash) {
  const Variant quitter = host_variant("quitter", [](const Problem&, const LaunchArgs&) { std::_Exit(0); });
  Supervisor supervisor(open_cpu, quick(), 20s);
  const auto results = supervisor.run(kShape, {&quitter}, {});
  EXPECT_EQ(results[0].verdict, Verdict::crashed);
  EXPECT_EQ(results[0].detail, "the process ended with exit code 0 during: check kernelbench");
}

TEST(Supervisor, PassesOnThatTheMachineIsAtFault) {
  const Variant variant = host_variant(
      "bystander", [](const Problem&, const LaunchArgs&) { throw EnvironmentError("a bit flipped"); });
  Supervisor supervisor(open_cpu, quick(), 20s);
  EXPECT_THROW(supervisor.run(kShape, {&variant}, {}), EnvironmentError);
}

TEST(Supervisor, TellsProgress) {
  const Variant slow = host_variant("slow", [](const Problem& problem, const LaunchArgs& args) {
    std::this_thread::sleep_for(120ms);
    convolve_on_host(problem, args);
  });
  Supervisor supervisor(open_cpu, quick(), 20s);
  std::vector<std::string> seen;
  supervisor.run(kShape, {&slow}, {.step = [&](const Variant& variant, const Step& step) {
                   seen.push_back(variant.name + ": " + to_string(step));
                 }});
  EXPECT_NE(std::ranges::find(seen, "slow: time"), seen.end());
}

TEST(Supervisor, TellsResultsAsTheyStand) {
  const Variant first = host_variant("first"), last = host_variant("last");
  const Variant lazy = host_variant("lazy", [](const Problem&, const LaunchArgs&) {});
  const Variant quitter = host_variant("quitter", [](const Problem&, const LaunchArgs&) { std::_Exit(3); });
  Supervisor supervisor(open_cpu, quick(), 20s);
  std::vector<std::vector<CaseResult>> told;
  supervisor.run(kShape, {&first, &quitter, &lazy, &last},
                 {.so_far = [&](const std::vector<CaseResult>& results) { told.push_back(results); }});
  ASSERT_EQ(told.size(), quick().run.fills.size());
  for (std::size_t fill = 0; fill < told.size(); ++fill) {
    const auto& [a, b, c, d] =
        std::tie(told[fill].at(0), told[fill].at(1), told[fill].at(2), told[fill].at(3));
    EXPECT_EQ(a.verdict, Verdict::skipped);  // not passed: its time is to come
    EXPECT_EQ(a.reason, "interrupted");
    EXPECT_EQ(a.checks.size(), fill + 1);
    EXPECT_EQ(b.verdict, Verdict::crashed);
    EXPECT_EQ(c.verdict, Verdict::failed);
    EXPECT_EQ(d.variant, "last");
  }
}

}  // namespace
}  // namespace convmish
