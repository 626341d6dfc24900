// The activation in fp32 against float64, over a dense grid of all floats.
#include "variants/common/mish.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "check/acceptance.hpp"

namespace convmish {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr AcceptanceRule kExactPreActivation{};  // delta = 0: only the activation may round

/// The device's operations at the edge of what PTX promises: every exponential and every reciprocal off by
/// the same signs, at the worst.
template <int kExpSign, int kReciprocalSign>
struct WorstMath : ActivationMath {
  static float exp2(float x) { return ActivationMath::exp2(x) * (1.0f + kExpSign * 0x1p-22f); }
  static float reciprocal(float x) { return (1.0f / x) * (1.0f + kReciprocalSign * 0x1p-23f); }
};

struct Worst {
  double ratio = 0;         // error of mish of mish by what the acceptance rule allows
  double mish_error = 0;    // units of 2^-24 of the result, where e^x is a normal float
  double double_error = 0;  // the same of mish of mish
  float at = 0;             // where ratio is
};

/// Over every `step`-th bit pattern; a prime, so that low bits vary. 997: some 8400 floats a binade.
template <class Math>
Worst worst_over_floats(std::uint64_t step) {
  Worst worst;
  const auto relative = [](double found, double expected) {
    return std::fabs(found - expected) / std::fabs(expected) * 0x1p24;
  };
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += step) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isfinite(x)) continue;
    const float twice = mish_of_mish<Math>(x);
    const Judgement judgement = judge(twice, x, 0, kExactPreActivation);
    if (!(judgement.ratio <= worst.ratio)) worst.ratio = judgement.ratio, worst.at = x;  // NaN is kept
    if (x < -87.3f || std::fabs(x) < 0x1p-124f) continue;  // e^x, or the result, becomes subnormal
    worst.mish_error = std::fmax(worst.mish_error, relative(mish<Math>(x), mish64(x)));
    worst.double_error = std::fmax(worst.double_error, relative(twice, judgement.expected));
  }
  return worst;
}

/// Errors in units of 2^-24 of the result.
template <class Math>
void expect_within(double mish_error, double double_error, std::uint64_t step) {
  const Worst worst = worst_over_floats<Math>(step);
  EXPECT_LE(worst.ratio, 1) << "at " << worst.at;
  EXPECT_LE(worst.mish_error, mish_error);
  EXPECT_LE(worst.double_error, double_error);
}

// The figures are the measured ones, rounded up.
TEST(Mish, IsWithinTheBoundOverAllFloats) {
  expect_within<ActivationMath>(6.5, 7.5, 997);
}

TEST(Mish, IsWithinTheBoundWithTheDevicesWorstRounding) {
  expect_within<WorstMath<+1, +1>>(13, 18, 9973);
  expect_within<WorstMath<+1, -1>>(13, 18, 9973);
  expect_within<WorstMath<-1, +1>>(13, 18, 9973);
  expect_within<WorstMath<-1, -1>>(13, 18, 9973);
}

TEST(Mish, KeepsTheEndsOfTheRange) {
  EXPECT_FLOAT_EQ(mish(FLT_MAX), FLT_MAX);
  EXPECT_FLOAT_EQ(mish_of_mish(FLT_MAX), FLT_MAX);
  EXPECT_LE((mish_of_mish<WorstMath<+1, +1>>(FLT_MAX)), FLT_MAX);  // not infinite
  EXPECT_EQ(mish_of_mish(kInfinity), kInfinity);
  EXPECT_EQ(mish_of_mish(-FLT_MAX), 0.0f);
  EXPECT_TRUE(std::signbit(mish(-FLT_MAX)));
  EXPECT_EQ(mish_of_mish(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(mish_of_mish(-0.0f)));
}

TEST(Mish, KeepsNan) {
  EXPECT_TRUE(std::isnan(mish(std::nanf(""))));
  EXPECT_TRUE(std::isnan(mish_of_mish(std::nanf(""))));
  EXPECT_TRUE(std::isnan(mish(-kInfinity)));  // as x tanh(softplus(x))
}

TEST(Mish, TheRangesWhereItTakesShortcutsAreSafe) {
  // At kMishIsIdentity the quotient n / (n + 2) is 1 to float; at kMishIsZero e^x is below every float.
  const double e = std::exp(double{kMishIsIdentity});
  EXPECT_EQ(static_cast<float>(e * (e + 2) / (e * (e + 2) + 2)), 1.0f);
  EXPECT_LT(std::exp(double{kMishIsZero}), 0x1p-149);
}

}  // namespace
}  // namespace convmish
