// No false alarm: every real variant of the CPU device passes every fill on the shapes of
// configs/random.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/plan.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "run/runner.hpp"

namespace convmish {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kTakeEvery = 20;  // emulated kernels are that much slower
#else
constexpr std::size_t kTakeEvery = 1;
#endif

/// Parts of the shapes, to be tried side by side: most of the time is spent waiting for what a launch may
/// have left behind.
constexpr std::size_t kParts = 4;
class RandomShapes : public testing::TestWithParam<std::size_t> {};

TEST_P(RandomShapes, EveryVariantPassesEveryFill) {
  RunnerOptions options;
  options.run = load_config(CONVMISH_RANDOM_CONFIG);
  ASSERT_EQ(options.run.shapes.size(), 200u);
  ASSERT_EQ(options.run.fills.size(), Words<Fill>::list.size());
  const auto variants = select_variants(Registry::instance(), DeviceKind::cpu, options.run.variants);
  ASSERT_FALSE(variants.empty());

  const auto device = make_cpu_device();
  std::vector<int> passed(variants.size());
  for (std::size_t i = kTakeEvery * GetParam(); i < options.run.shapes.size(); i += kTakeEvery * kParts) {
    const auto results = run_shape(*device, variants, options.run.shapes[i], options);
    for (std::size_t v = 0; v < results.size(); ++v) {
      const CaseResult& result = results[v];
      EXPECT_TRUE(result.verdict == Verdict::passed || result.verdict == Verdict::skipped)
          << to_string(result.verdict) << ": " << result.detail << "\n  repeat: " << result.repeat;
      passed[v] += result.verdict == Verdict::passed;
    }
  }
  // A variant may decline a shape, not all of them.
  for (std::size_t v = 0; v < variants.size(); ++v) EXPECT_GT(passed[v], 0) << variants[v]->name;
}

INSTANTIATE_TEST_SUITE_P(Part, RandomShapes, testing::Range<std::size_t>(0, kParts));

}  // namespace
}  // namespace convmish
