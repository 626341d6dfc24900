#include "check/acceptance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace convmish {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
constexpr Shape kShape{.n = 1, .c = 64, .h = 8, .w = 8, .k = 8};

const AcceptanceRule kFp32 = acceptance_rule(MathClass::fp32, kShape, false);
const AcceptanceRule kTf32 = acceptance_rule(MathClass::tf32, kShape, false);
const AcceptanceRule kExact = acceptance_rule(MathClass::fp32, kShape, true);

// x tanh(softplus(x)) in long double, by another route than the code under test.
double mish_by_definition(long double x) {
  return static_cast<double>(x * std::tanh(std::log1p(std::exp(x))));
}

TEST(Mish64, AgreesWithItsDefinition) {
  for (double x = -700; x < 700; x += 0.37) {
    const double expected = mish_by_definition(static_cast<long double>(x));
    EXPECT_NEAR(mish64(x), expected, 4e-15 * std::fabs(expected)) << x;
  }
}

TEST(Mish64, IsRightAtTheEnds) {
  EXPECT_EQ(mish64(1e300), 1e300);
  EXPECT_EQ(mish64(kInf), kInf);
  EXPECT_EQ(mish64(-kInf), 0);
  EXPECT_TRUE(std::signbit(mish64(-1e300)));
  EXPECT_TRUE(std::isnan(mish64(kNan)));
}

TEST(Mish64, DerivativeIsTheSlope) {
  for (double x = -30; x < 30; x += 0.11) {
    const double h = 1e-5;
    EXPECT_NEAR(mish64_derivative(x), (mish64(x + h) - mish64(x - h)) / (2 * h), 1e-9) << x;
    EXPECT_NEAR(activation64_derivative(x), (activation64(x + h) - activation64(x - h)) / (2 * h), 1e-9) << x;
  }
}

TEST(Mish64, HasItsMinimumWhereTheRuleLooksForIt) {
  const double least = activation64(kActivationArgmin);
  for (double x = -3; x < 1; x += 0.001) EXPECT_GE(activation64(x), least - 1e-12);
}

TEST(Judge, AcceptsTheRoundedReferenceAndRejectsWhatIsFarFromIt) {
  for (const double z : {-50.0, -20.0, -3.0, -1.19, -0.5, 0.25, 1.0, 30.0, 1e10}) {
    const double s = std::fabs(z) + 4, y = static_cast<double>(static_cast<float>(activation64(z)));
    EXPECT_TRUE(judge(y, z, s, kFp32).right) << z;
    EXPECT_TRUE(judge(y, z, s, kExact).right) << z;
    EXPECT_FALSE(judge(y + 1e-3 * s, z, s, kFp32).right) << z;
    EXPECT_FALSE(judge(kNan, z, s, kFp32).right) << z;
    EXPECT_FALSE(judge(kInf, z, s, kFp32).right) << z;
  }
}

TEST(Judge, AllowsWhatTheClassRoundsAndNotMore) {
  const double z = 1, s = 10, slope = activation64_derivative(z);
  const double one_tf32_rounding = slope * 0x1p-11 * s;
  EXPECT_FALSE(judge(activation64(z) + one_tf32_rounding, z, s, kFp32).right);
  EXPECT_TRUE(judge(activation64(z) + one_tf32_rounding, z, s, kTf32).right);
  EXPECT_FALSE(judge(activation64(z) + 8 * one_tf32_rounding, z, s, kTf32).right);
}

TEST(Judge, HoldsTheNegativeTailRelatively) {
  const double z = -30, expected = activation64(z);  // about -2.8e-12: any absolute tolerance swallows it
  EXPECT_TRUE(judge(expected * (1 + 20 * 0x1p-24), z, 30, kExact).right);
  EXPECT_FALSE(judge(0, z, 30, kExact).right);
  EXPECT_FALSE(judge(expected * (1 + 40 * 0x1p-24), z, 30, kExact).right);
}

TEST(Judge, AcceptsAFlushedSubnormal) {
  const double z = -100;  // f(z) is below the least normal float
  EXPECT_TRUE(judge(0, z, 100, kExact).right);
  EXPECT_TRUE(judge(activation64(z), z, 100, kExact).right);
}

TEST(Judge, TakesTheMinimumIntoAccount) {
  // The interval of z straddles the minimum: f there is lower than at both ends.
  const AcceptanceRule wide{.relative_delta = 0.1};
  EXPECT_TRUE(judge(activation64(kActivationArgmin), -1.15, 1, wide).right);
  EXPECT_FALSE(judge(activation64(kActivationArgmin) - 0.01, -1.15, 1, wide).right);
}

// Near the minimum the interval of f reaches far to one side and nowhere to the other.
TEST(Judge, HasARatioAboveOneForWhatIsWrongAlone) {
  const double least = activation64(kActivationArgmin);
  for (double z = kActivationArgmin - 0.03; z < kActivationArgmin + 0.03; z += 0.0017)
    for (double y = least - 0.003; y < least + 0.003; y += 1e-5) {
      const Judgement judgement = judge(y, z, 20, kTf32);
      EXPECT_EQ(judgement.right, judgement.ratio <= 1) << z << " " << y << " " << judgement.ratio;
    }
  const Judgement below = judge(least - 5e-5, kActivationArgmin, 20, kTf32);
  EXPECT_FALSE(below.right);
  EXPECT_GT(below.ratio, 1);
}

TEST(Judge, AsksForTheReferencesKindWhereItIsNotFinite) {
  EXPECT_TRUE(judge(kNan, kNan, kNan, kFp32).right);
  EXPECT_FALSE(judge(0, kNan, kNan, kFp32).right);
  EXPECT_TRUE(judge(kInf, kInf, kInf, kFp32).right);
  EXPECT_FALSE(judge(kNan, kInf, kInf, kFp32).right);
  EXPECT_FALSE(judge(3e38, kInf, kInf, kFp32).right);
  EXPECT_TRUE(judge(-0.0, -kInf, kInf, kFp32).right);
  EXPECT_TRUE(judge(kNan, -kInf, kInf, kFp32).right);
  EXPECT_FALSE(judge(-1, -kInf, kInf, kFp32).right);
}

TEST(Judge, AsksForNothingDefiniteWherePartialSumsMayOverflow) {
  const double s = 2.0 * static_cast<double>(std::numeric_limits<float>::max());
  for (const double y : {kInf, kNan, 1.0}) EXPECT_TRUE(judge(y, 1.0, s, kFp32).right);
}

TEST(Judge, AsksForNothingDefiniteWhereAMultiplicandOverflowsInItsClass) {
  for (const double y : {kInf, kNan, 1.0}) EXPECT_TRUE(judge(y, 1.0, kNan, kTf32).right);
  EXPECT_FALSE(judge(1.0, kNan, kNan, kTf32).right) << "a NaN among the inputs stays one";
  const double largest = static_cast<double>(std::numeric_limits<float>::max());
  EXPECT_TRUE(kTf32.overflows(largest));
  EXPECT_FALSE(kTf32.overflows(static_cast<double>(0x1.ffdp127f)));
  EXPECT_FALSE(kTf32.overflows(kInf)) << "an infinity does not become one by rounding";
  EXPECT_FALSE(kFp32.overflows(largest));
}

TEST(Judge, TellsWhereZeroWouldPass) {
  EXPECT_TRUE(judge(0, 0, 1, kFp32).zero_accepted);
  EXPECT_FALSE(judge(0, 1, 1, kFp32).zero_accepted);
}

TEST(Allclose, IsAbsoluteAndRelative) {
  const AcceptanceRule rule = allclose_rule(1e-2, 1e-3);
  const double z = 5, expected = activation64(z), allowed = 1e-3 + 1e-2 * expected;
  for (const double sign : {1.0, -1.0}) {
    EXPECT_TRUE(judge(expected + sign * 0.99 * allowed, z, 1, rule).right);
    EXPECT_FALSE(judge(expected + sign * 1.01 * allowed, z, 1, rule).right);
  }
  EXPECT_TRUE(judge(0, -50, 1, rule).right) << "the tail is below any absolute tolerance";
  EXPECT_TRUE(judge(expected, z, 1, allclose_rule(0, 0)).right);
}

TEST(Allclose, AsksForTheSameKindWhereItIsNotFinite) {
  const AcceptanceRule rule = allclose_rule(1, 1);
  EXPECT_FALSE(judge(kNan, 1, 1, rule).right);
  EXPECT_FALSE(judge(kInf, 1, 1, rule).right);
  EXPECT_TRUE(judge(kNan, kNan, kNan, rule).right);
  EXPECT_TRUE(judge(kInf, kInf, kInf, rule).right);
  EXPECT_FALSE(judge(-kInf, kInf, kInf, rule).right);
  EXPECT_TRUE(judge(kInf, 1e39, 1e39, rule).right) << "as a float it is infinite";
}

TEST(Ulp, CountsSpacingsOfFloats) {
  EXPECT_EQ(ulp_error(0x1p-23, 1.0), 1);
  EXPECT_EQ(ulp_error(0x1p-23, 0.75), 2);
  EXPECT_EQ(ulp_error(0x1p-149, 0), 1);
}

}  // namespace
}  // namespace convmish
