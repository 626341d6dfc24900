#include "variants/common/integers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace convmish {
namespace {

TEST(AreIntegers, TakesIntegersOfEitherSignAndAnySize) {
  EXPECT_TRUE(are_integers(std::vector{0.f, -0.f, 1.f, -7.f, 16777215.f, 1e30f}));
}

TEST(AreIntegers, FindsTheOnlyOneThatIsNone) {
  // 3456: the most that 64 channels can sum to in the probe; then what a plan makes of it that is off by
  // 2^-17.
  for (const float value : {0.5f, -2.5f, 3456.f * (1 + std::ldexp(1.f, -17)), std::nextafter(1.f, 0.f),
                            std::numeric_limits<float>::denorm_min()})
    for (const std::size_t at : {0u, 50u, 99u}) {
      std::vector<float> values(100, 3456.f);
      values[at] = value;
      EXPECT_FALSE(are_integers(values)) << value << " at " << at;
    }
}

TEST(AreIntegers, WhatIsNotFiniteIsNone) {
  EXPECT_FALSE(are_integers(std::vector{1.f, -std::numeric_limits<float>::infinity()}));
  EXPECT_FALSE(are_integers(std::vector{1.f, std::numeric_limits<float>::quiet_NaN(), 2.f}));
  EXPECT_FALSE(are_integers(std::vector{-std::numeric_limits<float>::quiet_NaN()}));
}

}  // namespace
}  // namespace convmish
