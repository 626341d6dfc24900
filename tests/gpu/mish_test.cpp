// The GPU's activations over every float; variants/common/mish.hpp and hopper_mish.cuh quote these figures.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gpu/gpu_fixture.hpp"
#include "tests/gpu/mish_errors.hpp"

namespace convmish {
namespace {

class MishTest : public GpuTest {
 protected:
  /// The figures are the measured ones, rounded up.
  static void expect_within(const char* name, Activation activation, double ulp, double outside) {
    const ActivationErrors errors = measure_activation_errors(activation);
    std::printf(
        "%-14s %.2f ulp at x = %.9g; %.2f of 2^-126 where e^x or the result is subnormal; "
        "%.2f of what is accepted\n",
        name, errors.normal.ulp, errors.normal.at, errors.outside, errors.ratio);
    EXPECT_LE(errors.normal.ulp, ulp) << name << " at " << errors.normal.at;
    EXPECT_LE(errors.outside, outside) << name;
    EXPECT_LE(errors.ratio, 1) << name;
    EXPECT_EQ(errors.wrong_kind, 0u) << name;
  }
};

TEST_F(MishTest, IsWithinTheBoundOnEveryFloat) {
  expect_within("mish", Activation::mish, 6, 100);
  expect_within("mish of mish", Activation::mish_of_mish, 8.5, 100);
}

TEST_F(MishTest, OfTheEpiloguesIsWithinTheBoundOnEveryFloatTheyMeet) {
  expect_within("epilogues", Activation::epilogue, 102, 100);
}

}  // namespace
}  // namespace convmish
