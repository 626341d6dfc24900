#include "run/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "check/multiplicand.hpp"
#include "core/data_sheet.hpp"
#include "core/error.hpp"
#include "run/verify.hpp"
#include "tests/run/fake_device.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

constexpr Shape kShape{.n = 2, .c = 5, .h = 9, .w = 8, .k = 3};
constexpr int kLaunchesBeforeTiming = 2 * 6 + 2;  // two a check, then one on each set of inputs

RunnerOptions quick() {
  RunnerOptions options;
  options.run.fills = default_fills();
  options.run.timing.samples = 8;
  options.baseline = "baseline";
  return options;
}

std::vector<CaseResult> run(const std::vector<const Variant*>& variants,
                            const RunnerOptions& options = quick()) {
  const auto device = make_cpu_device();
  return run_shape(*device, variants, kShape, options);
}

CaseResult run_one(const Variant& variant) {
  return run({&variant}).front();
}

TEST(Runner, PassesAnHonestVariantOnEveryFillAndTimesIt) {
  const CaseResult result = run_one(host_variant("honest"));
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  EXPECT_EQ(result.checks.size(), default_fills().size());
  for (const FillResult& check : result.checks) EXPECT_EQ(check.verdict, Verdict::passed) << check.detail;
  ASSERT_TRUE(result.time_ms);
  EXPECT_EQ(result.time_ms->samples.size(), 8u);
  EXPECT_EQ(result.time_ms->cache, Cache::hot) << "the CPU's caches are not emptied unless asked for";
  EXPECT_TRUE(result.prepare_ms);
}

/// Of the tensors that a launch takes and gives.
std::size_t tensor_bytes(const Shape& shape) {
  return sizeof(float) * static_cast<std::size_t>(shape.x_elements() + shape.filter_elements() + shape.k +
                                                  shape.y_elements());
}

// The device's own memory for the reference is measured in tests/gpu.
TEST(Runner, ChecksHoldLittleBesideTheVariantsTensors) {
  const Shape shape{.n = 3, .c = 1, .h = 1026, .w = 1026, .k = 2};
  Shape reduced = shape;
  reduced.n = check_batch(shape, /*first=*/false);
  ASSERT_EQ(reduced.n, 1);
  RunnerOptions options = quick();
  options.run.time = false;
  FakeDevice device;
  const Variant honest = host_variant("honest");
  EXPECT_EQ(run_shape(device, {&honest}, shape, options).front().verdict, Verdict::passed);
  EXPECT_LE(device.most_held_bytes, tensor_bytes(shape) + tensor_bytes(reduced));
  EXPECT_EQ(device.held_bytes, 0u);
}

TEST(Runner, FailsAWrongResultAndDoesNotTimeIt) {
  const CaseResult result =
      run_one(host_variant("no_bias", [](const Problem& problem, const LaunchArgs& args) {
        Problem without = problem;
        const std::vector<float> zeros(static_cast<std::size_t>(problem.shape.k));
        without.bias = zeros.data();
        convolve_on_host(without, args);
      }));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "outside_tolerance");
  EXPECT_FALSE(result.time_ms);
}

TEST(Runner, FailsAnOutputThatIsNotWritten) {
  const CaseResult result = run_one(host_variant("lazy", [](const Problem&, const LaunchArgs&) {}));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.checks.front().error.nan_outputs, kShape.y_elements());
}

TEST(Runner, FailsAWriteBesideTheOutput) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer stops at the write itself";
#endif
  for (const std::int64_t at : {std::int64_t{-1}, kShape.y_elements()}) {
    const CaseResult result =
        run_one(host_variant("stray", [at](const Problem& problem, const LaunchArgs& args) {
          convolve_on_host(problem, args);
          args.y[at] = 0;
        }));
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_EQ(result.reason, "wrote_outside_buffers");
    EXPECT_NE(result.detail.find(at < 0 ? "wrote before y" : "wrote past y"), std::string::npos)
        << result.detail;
  }
}

TEST(Runner, FailsAChangedInput) {
  const CaseResult result =
      run_one(host_variant("vandal", [](const Problem& problem, const LaunchArgs& args) {
        convolve_on_host(problem, args);
        const_cast<float*>(args.x)[7] += 1;
      }));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_NE(result.detail.find("changed x"), std::string::npos) << result.detail;
}

TEST(Runner, FailsAVariantThatIsRightOnlyAtFirst) {
  const CaseResult result = run_one(host_variant(
      "tired", [count = std::make_shared<int>(0)](const Problem& problem, const LaunchArgs& args) {
        if (++*count <= kLaunchesBeforeTiming + 2) convolve_on_host(problem, args);
      }));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "wrong_when_timed");
}

TEST(Runner, DoesNotBlameTheNextVariantForDamage) {
  const Variant vandal = host_variant("vandal", [](const Problem& problem, const LaunchArgs& args) {
    convolve_on_host(problem, args);
    const_cast<float*>(args.x)[7] += 1;
  });
  const Variant honest = host_variant("honest");
  const auto results = run({&vandal, &honest});
  EXPECT_EQ(results[0].reason, "wrote_outside_buffers");
  EXPECT_EQ(results[1].verdict, Verdict::passed) << results[1].detail;
}

/// Beside what the vandal damages in its timed launches, behind those that are all looked at: it is then
/// often another's look that finds it.
void expect_blame_on_vandal_alone(const std::function<void(const LaunchArgs&)>& damage, Variant first,
                                  const std::string& words) {
  constexpr int kLookedAt = 8;
  const Variant vandal = host_variant(
      "vandal", [damage, count = std::make_shared<int>(0)](const Problem& problem, const LaunchArgs& args) {
        convolve_on_host(problem, args);
        if (++*count > kLaunchesBeforeTiming + kLookedAt) damage(args);
      });
  const Variant last = host_variant("last");
  RunnerOptions options = quick();
  options.run.timing.samples = 40;
  const auto results = run({&first, &vandal, &last}, options);
  EXPECT_EQ(results[0].verdict, Verdict::passed) << results[0].detail;
  EXPECT_EQ(results[1].reason, "wrong_when_timed");
  EXPECT_NE(results[1].detail.find(words), std::string::npos) << results[1].detail;
  EXPECT_EQ(results[2].verdict, Verdict::passed) << results[2].detail;
}

TEST(Runner, BlamesDamageInTimedLaunchesOnItsCulpritAlone) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer stops at the write itself";
#endif
  expect_blame_on_vandal_alone([](const LaunchArgs& args) { args.y[-1] = 0; }, host_variant("first"),
                               "wrote before y");
}

TEST(Runner, BlamesDamageBesideAnothersPlanMemoryOnItsCulpritAlone) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer stops at the write itself";
#endif
  const auto end = std::make_shared<float*>(nullptr);
  Variant first = host_variant("first");
  first.prepare = [end, prepare = first.prepare](const Problem& problem) {
    constexpr std::size_t kFloats = 16;
    *end = static_cast<float*>(problem.memory->allocate(kFloats * sizeof(float))) + kFloats;
    return prepare(problem);
  };
  expect_blame_on_vandal_alone([end](const LaunchArgs&) { **end = 0; }, first,
                               "wrote past memory of the plan of first");
}

TEST(Runner, DoesNotSkipWhatHasFailed) {
  Variant variant = host_variant("greedy");
  variant.prepare = [count = std::make_shared<int>(0)](const Problem&) {
    if (++*count > 1) throw OutOfMemory(2, 1);  // for every fill but the first
    return Plan{.launch = [](const LaunchArgs&) {}};
  };
  const CaseResult result = run_one(variant);
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.remarks.size(), default_fills().size() - 1);
}

/// `launch` may go on in a thread, which ends before its buffers do; it is told which launch this is.
Variant threaded_variant(void (*launch)(int count, const Problem&, const LaunchArgs&, std::jthread&)) {
  Variant variant = host_variant("threaded");
  variant.prepare = [launch, count = std::make_shared<int>(0)](const Problem& problem) {
    Plan plan;
    plan.launch = [=, thread = std::make_shared<std::jthread>()](const LaunchArgs& args) {
      launch(++*count, problem, args, *thread);
    };
    return plan;
  };
  return variant;
}

TEST(Runner, FailsWorkThatGoesOnAfterLaunch) {
  const CaseResult result =
      run_one(threaded_variant([](int, const Problem& problem, const LaunchArgs& args, std::jthread& thread) {
        thread = std::jthread([problem, args] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));  // launch has returned by then
          convolve_on_host(problem, args);
        });
      }));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "work_outside_stream");
}

TEST(Runner, FailsWorkThatGoesOnAfterTimedLaunchesOnly) {
  const CaseResult result = run_one(
      threaded_variant([](int count, const Problem& problem, const LaunchArgs& args, std::jthread& thread) {
        thread = {};  // stops it
        convolve_on_host(problem, args);
        if (count <= kLaunchesBeforeTiming) return;
        thread = std::jthread([y = args.y](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            *y += 1;
            std::this_thread::yield();
          }
        });
      }));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "wrong_when_timed");
}

TEST(Runner, FailsAnotherClassWhenTimed) {
  // So many products that the rule for fp32 allows TF32's error: only the fingerprint tells.
  constexpr Shape kDeep{.n = 1, .c = 2048, .h = 4, .w = 5, .k = 8};
  Variant variant = host_variant("tf32_when_timed");
  variant.prepare = [](const Problem& problem) {
    Plan plan;
    plan.launch = [problem](const LaunchArgs& args) {
      // Exact where one element outweighs others: there the rule itself would tell.
      const bool rounds =
          problem.timed && *std::max_element(args.x, args.x + problem.shape.x_elements()) < 100;
      convolve_rounded_on_host(problem, args, rounds ? Multiplicands::tf32 : Multiplicands::exact);
    };
    return plan;
  };
  RunnerOptions options = quick();
  options.run.fills = {Fill::kernelbench};
  const auto device = make_cpu_device();
  const CaseResult result = run_shape(*device, {&variant}, kDeep, options).front();
  EXPECT_EQ(result.checks.front().verdict, Verdict::passed) << result.checks.front().detail;
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_NE(result.detail.find("declared fp32"), std::string::npos) << result.detail;
}

TEST(Runner, ChecksTheVeryPlanThatIsTimedAndOtherwiseAsksForNone) {
  std::vector<bool> asked_for_timing;
  Variant variant = host_variant("right");
  variant.prepare = [&](const Problem& problem) {
    asked_for_timing.push_back(problem.timed);
    Plan plan;
    plan.launch = [problem](const LaunchArgs& args) { convolve_on_host(problem, args); };
    return plan;
  };
  RunnerOptions options = quick();
  options.run.fills = {Fill::kernelbench};
  const auto device = make_cpu_device();
  for (const bool time : {true, false}) {
    asked_for_timing.clear();
    options.run.time = time;
    ASSERT_EQ(run_shape(*device, {&variant}, kShape, options).front().verdict, Verdict::passed);
    ASSERT_FALSE(asked_for_timing.empty());
    for (const bool asked : asked_for_timing) EXPECT_EQ(asked, time);
  }
}

TEST(Runner, FailsAnOutputKeptForAnInputThatHasSinceChangedInPlace) {
  // Knows an x by its address and by an element of every row.
  using Kept = std::map<std::pair<const float*, std::vector<float>>, std::vector<float>>;
  Variant hoarder = host_variant("hoarder");
  hoarder.prepare = [](const Problem& problem) {
    Plan plan;
    plan.launch = [problem, kept = std::make_shared<Kept>()](const LaunchArgs& args) {
      std::vector<float> digest;
      for (std::int64_t i = 0; i < problem.shape.x_elements(); i += problem.shape.w)
        digest.push_back(args.x[i]);
      std::vector<float>& y = (*kept)[{args.x, digest}];
      if (y.empty()) {
        convolve_on_host(problem, args);
        y.assign(args.y, args.y + problem.shape.y_elements());
      }
      std::ranges::copy(y, args.y);
    };
    return plan;
  };
  const CaseResult result = run_one(hoarder);
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "wrong_when_timed");
}

TEST(Runner, PassesOnThatTheMachineIsAtFault) {
  const Variant variant = host_variant(
      "bystander", [](const Problem&, const LaunchArgs&) { throw EnvironmentError("a bit flipped"); });
  EXPECT_THROW(run({&variant}), EnvironmentError);
}

TEST(Runner, TellsAVariantThatDiffersFromRunToRun) {
  const CaseResult result = run_one(host_variant(
      "restless", [count = std::make_shared<int>(0)](const Problem& problem, const LaunchArgs& args) {
        convolve_on_host(problem, args);
        if (++*count % 2 && std::isfinite(args.y[0])) args.y[0] = std::nextafter(args.y[0], 10.0f);
      }));
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  EXPECT_EQ(result.checks.front().repeatable, false);
}

TEST(Runner, TellsHowManyOutputsALaunchRecomputed) {
  Variant variant = host_variant("guarded");
  variant.prepare = [](const Problem& problem) {
    Plan plan;
    plan.recomputed_outputs = static_cast<std::uint64_t*>(problem.memory->allocate(sizeof(std::uint64_t)));
    *plan.recomputed_outputs = 1000;  // of launches that are none of the check's
    plan.launch = [problem, count = plan.recomputed_outputs](const LaunchArgs& args) {
      convolve_on_host(problem, args);
      *count += 7;
    };
    return plan;
  };
  const Variant silent = host_variant("silent");
  const auto results = run({&variant, &silent});
  EXPECT_EQ(results[0].verdict, Verdict::passed) << results[0].detail;
  for (const FillResult& check : results[0].checks) EXPECT_EQ(check.recomputed_outputs, 7);
  for (const FillResult& check : results[1].checks) EXPECT_FALSE(check.recomputed_outputs);
}

TEST(Runner, KeepsOthersGoingWhenOneThrows) {
  const Variant thrower = host_variant(
      "thrower", [](const Problem&, const LaunchArgs&) { throw std::runtime_error("no luck today"); });
  const Variant honest = host_variant("honest");
  const auto results = run({&thrower, &honest});
  EXPECT_EQ(results[0].verdict, Verdict::crashed);
  EXPECT_EQ(results[0].reason, "exception");
  EXPECT_EQ(results[0].detail, "no luck today");
  EXPECT_EQ(results[1].verdict, Verdict::passed);
}

TEST(Runner, SkipsWhatCannotRunAndSaysWhy) {
  Variant picky = host_variant("picky");
  picky.supports = [](const Shape&, const DeviceInfo&) { return "needs c to be a multiple of 8"; };
  Variant hungry = host_variant("hungry");
  hungry.prepare = [](const Problem& problem) {
    problem.memory->allocate(std::size_t{1} << 60);
    return Plan{};
  };
  Variant elsewhere = host_variant("elsewhere");
  elsewhere.device = DeviceKind::cuda;
  const auto results = run({&picky, &hungry, &elsewhere});
  for (const CaseResult& result : results) EXPECT_EQ(result.verdict, Verdict::skipped);
  EXPECT_EQ(results[0].reason, "unsupported");
  EXPECT_EQ(results[0].detail, "needs c to be a multiple of 8");
  EXPECT_EQ(results[1].reason, "out_of_memory");
  EXPECT_NE(results[1].detail.find("1152921504606846976"), std::string::npos) << results[1].detail;
  EXPECT_EQ(results[2].reason, "unavailable_here");
}

TEST(Runner, TellsSpeedAgainstTheBaselineOfTheSameClass) {
  Variant baseline = host_variant("baseline", [](const Problem& problem, const LaunchArgs& args) {
    for (int i = 0; i < 20; ++i) convolve_on_host(problem, args);
  });
  Variant fast = host_variant("fast"), other_class = host_variant("other_class");
  other_class.math = MathClass::tf32;
  const auto results = run({&baseline, &fast, &other_class});
  ASSERT_TRUE(results[0].speedup && results[1].speedup);
  EXPECT_EQ(*results[0].speedup, 1);
  EXPECT_GT(*results[1].speedup, 3);
  EXPECT_FALSE(results[2].speedup);
}

/// A device whose clock shows `tick_ms` for every launch, with the data sheet of an H200 and no cache.
CaseResult run_on_clock(double tick_ms, const Variant& variant, std::int64_t l2_bytes = 0) {
  FakeDevice device;
  device.looks.name = "NVIDIA H200";
  device.looks.l2_bytes = l2_bytes;
  device.clock = [tick_ms](double) { return TimedLaunch{tick_ms, std::nullopt}; };
  RunnerOptions options = quick();
  DeviceCeilings& ceilings = options.ceilings.emplace();
  ceilings.measured.rates = {.dram_bytes = 4e12, .ffma_flops = 5e13};
  ceilings.data_sheet = data_sheet_of(device.looks.name);
  return run_shape(device, {&variant}, kShape, options).front();
}

// Milliseconds by the data sheet: 67 TFLOP/s, 4.8 TB/s.
constexpr double kFfma = 1e3 * kShape.flops() / 67e12, kDram = 1e3 * kShape.least_bytes() / 4.8e12;

TEST(Runner, FailsATimeBelowTheDataSheetsFloor) {
  const CaseResult result = run_on_clock(kDram / 2, host_variant("too_fast"));
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "impossible_time");
  EXPECT_NE(result.detail.find("data sheet of NVIDIA H200"), std::string::npos) << result.detail;
  EXPECT_NE(result.detail.find("(dram)"), std::string::npos) << result.detail;
  EXPECT_TRUE(result.time_ms) << "the evidence";
}

TEST(Runner, PassesATimeThatTheDataSheetAllows) {
  const CaseResult result = run_on_clock(kDram, host_variant("fast"));
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  EXPECT_EQ(result.binding_ceiling, "dram");
  ASSERT_TRUE(result.floor_ms && result.percent_of_floor);
  EXPECT_DOUBLE_EQ(*result.floor_ms, kDram * 4.8 / 4) << "of the measured bandwidth";
  EXPECT_DOUBLE_EQ(*result.percent_of_floor, 120) << "measured ceilings can be beaten";
}

TEST(Runner, BlamesNoOneForDataThatTheCacheHolds) {
  constexpr std::int64_t kL2 = 1 << 20;
  EXPECT_EQ(run_on_clock(kFfma, host_variant("cached"), kL2).verdict, Verdict::passed);
  EXPECT_EQ(run_on_clock(kFfma / 2, host_variant("too_fast"), kL2).reason, "impossible_time");
}

TEST(Runner, TakesProductsAtTheirWordButKnowsNothingOfALibrarysPipe) {
  constexpr std::int64_t kL2 = 1 << 20;
  Variant split = host_variant("split");
  split.products = 3;
  EXPECT_EQ(run_on_clock(kFfma, split, kL2).reason, "impossible_time");
  Variant library = host_variant("library");
  library.pipe = Pipe::unknown;
  EXPECT_EQ(run_on_clock(kFfma / 100, library, kL2).verdict, Verdict::passed);
  Variant transform = host_variant("transform");
  transform.prepare = [prepare = transform.prepare](const Problem& problem) {
    Plan plan = prepare(problem);
    plan.algorithm = Algorithm::transform;
    return plan;
  };
  EXPECT_EQ(run_on_clock(kFfma / 100, transform, kL2).verdict, Verdict::passed);
}

TEST(Runner, FindsNothingImpossibleWithoutADataSheet) {
  FakeDevice device;
  device.clock = [](double) { return TimedLaunch{1e-12, std::nullopt}; };
  const Variant variant = host_variant("fast");
  RunnerOptions options = quick();
  options.ceilings.emplace().measured.rates.dram_bytes = 4e12;
  const auto results = run_shape(device, {&variant}, kShape, options);
  EXPECT_EQ(results.front().verdict, Verdict::passed) << results.front().detail;
}

/// A variant whose configurations take as many milliseconds as their names say, on a device with a clock for
/// it. The rule takes the first.
class Configured {
 public:
  explicit Configured(std::vector<std::string> configurations)
      : variant_(host_variant("configured", [this](const Problem& problem, const LaunchArgs& args) {
          launched_ = problem.configuration;
          if (launched_ == kFaulty) throw DeviceError("its launch fails");
          convolve_on_host(problem, args);
        })) {
    variant_.configurations = std::move(configurations);
    variant_.preferred_configuration = [this](const Shape&, const DeviceInfo&) {
      return variant_.configurations.front();
    };
    variant_.prepare = [this, prepare = variant_.prepare](const Problem& problem) {
      if (problem.configuration == kUnfit) throw Unsupported("configuration unfit is unfit");
      return prepare(problem);
    };
    device_.clock = [this](double) {
      return TimedLaunch{launched_.empty() ? 1.0 : std::stod(launched_), std::nullopt};
    };
  }

  static constexpr const char *kUnfit = "unfit", *kFaulty = "1";
  const Variant& variant() const { return variant_; }
  const std::string& last_launched() const { return launched_; }

  CaseResult run(const ConfigurationOptions& configurations) {
    RunnerOptions options = quick();
    options.run.fills = {Fill::kernelbench};
    options.configurations = configurations;
    return run_shape(device_, {&variant_}, kShape, options).front();
  }
  DeviceInfo& device() { return device_.looks; }

 private:
  std::string launched_;
  Variant variant_;
  FakeDevice device_;
};

TEST(Runner, FollowsTheRuleOfAVariantWithConfigurations) {
  Configured configured({"3", "2"});
  const CaseResult result = configured.run({});
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  ASSERT_TRUE(result.configuration);
  EXPECT_EQ(result.configuration->name, "3");
  EXPECT_EQ(result.configuration->by, ChosenBy::rule);
  EXPECT_EQ(result.note, "by the variant's rule");
  EXPECT_NE(result.repeat.find(" --configuration 3"), std::string::npos)
      << "another table may say otherwise: " << result.repeat;
  EXPECT_EQ(configured.last_launched(), "3");
  EXPECT_EQ(result.time_ms->median, 3);
}

TEST(Runner, TunesAndRunsTheFastestOfWhatFits) {
  Configured configured({"3", Configured::kUnfit, "2", "4"});
  const CaseResult result = configured.run({.tune = true});
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  ASSERT_TRUE(result.configuration);
  EXPECT_EQ(result.configuration->name, "2");
  EXPECT_EQ(result.configuration->by, ChosenBy::tuning);
  ASSERT_EQ(result.configuration->timed.size(), 3u);
  EXPECT_EQ(result.configuration->timed[2].name, "4");
  EXPECT_EQ(result.configuration->timed[2].median_ms, 4);
  EXPECT_EQ(result.note, "fastest of 3 timed");
  EXPECT_NE(result.repeat.find(" --configuration 2"), std::string::npos) << result.repeat;
  EXPECT_EQ(configured.last_launched(), "2");
  EXPECT_EQ(result.time_ms->median, 2);
}

TEST(Runner, DoesNotPassOverAConfigurationThatFailsWhileItTunes) {
  Configured configured({"3", Configured::kFaulty});
  const CaseResult result = configured.run({.tune = true});
  EXPECT_EQ(result.verdict, Verdict::crashed);
  EXPECT_NE(result.detail.find("its launch fails"), std::string::npos) << result.detail;
}

TEST(Runner, SkipsAVariantNoneOfWhoseConfigurationsFits) {
  Configured configured({Configured::kUnfit});
  const CaseResult result = configured.run({.tune = true});
  EXPECT_EQ(result.verdict, Verdict::skipped);
  EXPECT_EQ(result.reason, "unsupported");
  EXPECT_EQ(result.detail, "configuration unfit is unfit");
}

TEST(Runner, PrefersWhatIsAskedForToTheTableAndTheTableToTheRule) {
  Configured configured({"3", "2", "4"});
  ConfigurationOptions options;
  options.table.set(configured.device(), configured.variant(), kShape, "2");
  CaseResult result = configured.run(options);
  ASSERT_TRUE(result.configuration);
  EXPECT_EQ(result.configuration->by, ChosenBy::table);
  EXPECT_EQ(result.note, "from the tuning table");
  EXPECT_EQ(configured.last_launched(), "2");

  options.asked = "4";
  result = configured.run(options);
  EXPECT_EQ(result.configuration->by, ChosenBy::request);
  EXPECT_EQ(result.note, "asked for");
  EXPECT_EQ(configured.last_launched(), "4");

  options.asked = "of another variant";
  EXPECT_EQ(configured.run(options).configuration->by, ChosenBy::table);
}

TEST(Runner, RepeatCommandNamesTheCase) {
  RunnerOptions options = quick();
  options.run.timing = {};
  const Variant honest = host_variant("honest");
  const CaseResult result = new_case(honest, kShape, options.run, {});
  EXPECT_EQ(result.repeat,
            "convmish-bench --variant honest:fp32 --shape n2c5h9w8k3 --device cpu --seed 42 --fill "
            "kernelbench,normal,positive,wide,exact,special");
}

TEST(Runner, RepeatCommandCarriesEveryOptionThatIsNotTheDefault) {
  Variant variant = host_variant("honest");
  variant.device = DeviceKind::cuda;
  RunOptions run{.fills = {Fill::normal}, .time = false};
  run.timing = {.min_time_s = 0.25,
                .max_time_s = 8,
                .ci_half_width = 0.001,
                .samples = 12,
                .cache = Cache::hot,
                .duty_cycle = 1};
  run.timeout_s = 7;
  EXPECT_EQ(
      new_case(variant, kShape, run, {.kind = DeviceKind::cuda, .index = 1}).repeat,
      "convmish-bench --variant honest:fp32 --shape n2c5h9w8k3 --device cuda:1 --seed 42 --fill normal "
      "--no-time --timeout 7 --min-time 0.25 --max-time 8 --ci-half-width 0.001 --samples 12 --cache hot "
      "--duty-cycle 1");
}

}  // namespace
}  // namespace convmish
