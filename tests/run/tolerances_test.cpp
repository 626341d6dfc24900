#include "run/tolerances.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/multiplicand.hpp"
#include "run/runner.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

// Long sums: TF32 multiplicands err by more than 1e-4 on KernelBench's inputs.
constexpr Shape kShape{.n = 2, .c = 64, .h = 12, .w = 12, .k = 4};
constexpr Tolerance kKernelBench{.kind = Tolerance::Kind::kernelbench};
constexpr Tolerance kLoose{.kind = Tolerance::Kind::allclose, .rtol = 1e-2, .atol = 1e-2};
constexpr Tolerance kTight{.kind = Tolerance::Kind::allclose, .rtol = 0, .atol = 1e-9};

CaseResult run(const Variant& variant, std::vector<Tolerance> tolerances,
               std::vector<Fill> fills = {Fill::kernelbench}) {
  RunnerOptions options;
  options.run.fills = std::move(fills);
  options.run.tolerances = std::move(tolerances);
  options.run.time = false;
  const auto device = make_cpu_device();
  return run_shape(*device, {&variant}, kShape, options).front();
}

Variant with_tf32_multiplicands() {
  return host_variant("tf32", [](const Problem& problem, const LaunchArgs& args) {
    convolve_rounded_on_host(problem, args, Multiplicands::tf32);
  });
}

/// Its fill need not be one of the run's.
TEST(Tolerances, KernelBenchsRuleIsAStepOfItsOwn) {
  RunnerOptions options{.run = {.fills = {Fill::normal}, .tolerances = {kKernelBench}, .time = false}};
  const auto device = make_cpu_device();
  const Variant honest = host_variant("honest");
  std::vector<std::string> steps;
  run_shape(*device, {&honest}, kShape, options,
            {.step = [&](const Variant&, const Step& step) { steps.push_back(to_string(step)); }});
  EXPECT_EQ(steps, (std::vector<std::string>{"check normal", "check tolerance"}));
}

TEST(Tolerances, KernelBenchsRuleFailsTheBetterResult) {
  const CaseResult honest = run(host_variant("honest"), {kKernelBench});
  EXPECT_EQ(honest.verdict, Verdict::passed) << honest.detail;
  ASSERT_EQ(honest.tolerances.size(), 2u);
  EXPECT_EQ(honest.tolerances[0].against, "float64");
  EXPECT_EQ(honest.tolerances[0].verdict, Verdict::passed);
  EXPECT_EQ(honest.tolerances[0].compared, 5 * kShape.y_elements());
  EXPECT_LT(honest.tolerances[0].max_abs, 1e-5);
  EXPECT_EQ(honest.tolerances[1].against, "tf32");
  EXPECT_EQ(honest.tolerances[1].verdict, Verdict::failed);
  EXPECT_GT(honest.tolerances[1].max_abs, 1e-4);

  const CaseResult tf32 = run(with_tf32_multiplicands(), {kKernelBench});
  EXPECT_EQ(tf32.verdict, Verdict::failed) << "whatever the rule beside says";
  ASSERT_EQ(tf32.tolerances.size(), 2u);
  EXPECT_EQ(tf32.tolerances[0].verdict, Verdict::failed);
  EXPECT_EQ(tf32.tolerances[1].verdict, Verdict::passed);
  EXPECT_LT(tf32.tolerances[1].max_abs, 1e-5);
}

TEST(Tolerances, KernelBenchsRuleTakesFiveDifferentInputs) {
  // Right on the first two inputs only: those of the check's two launches and of the rule's first.
  const Variant tired = host_variant(
      "tired", [count = std::make_shared<int>(0)](const Problem& problem, const LaunchArgs& args) {
        static_cast<void>(++*count);
        convolve_on_host(problem, args);
        if (*count > 3) args.y[0] += 1;
      });
  const CaseResult result = run(tired, {kKernelBench});
  EXPECT_EQ(result.tolerances[0].violations, 4);
}

TEST(Tolerances, AllcloseIsToldForEachFill) {
  const CaseResult result = run(host_variant("honest"), {kLoose, kTight}, {Fill::kernelbench, Fill::normal});
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  ASSERT_EQ(result.tolerances.size(), 4u);
  for (const ToleranceResult& told : result.tolerances) {
    EXPECT_EQ(told.against, "float64");
    EXPECT_EQ(told.verdict, told.name == to_string(kLoose) ? Verdict::passed : Verdict::failed);
  }
  EXPECT_EQ(result.tolerances[0].fill, Fill::kernelbench);
  EXPECT_EQ(result.tolerances[3].fill, Fill::normal);
  EXPECT_GT(result.tolerances[3].violations, 0);
  EXPECT_NE(result.repeat.find("--tolerance rtol=0.01,atol=0.01"), std::string::npos) << result.repeat;
}

}  // namespace
}  // namespace convmish
