#include "check/fill.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace convmish {
namespace {

constexpr Shape kShape{.n = 2, .c = 16, .h = 20, .w = 20, .k = 8};

std::uint32_t bits(float value) {
  std::uint32_t b;
  std::memcpy(&b, &value, sizeof b);
  return b;
}

// The known answers published with Random123 (kat_vectors).
TEST(Philox, GivesThePublishedAnswers) {
  const auto zero = philox4x32_10(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const auto pi = philox4x32_10(0x85a308d3243f6a88u, 0x0370734413198a2eu, 0x299f31d0a4093822u);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdccebu);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

TEST(Fill, NormalHasTheMomentsOfANormal) {
  const FillSpec spec = fill_spec(Fill::normal, 7, kShape);
  double sum = 0, squares = 0, fourth = 0;
  const std::int64_t count = 200'000;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(draw(spec, Tensor::x, i));
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3 - 1.2 / 8, 0.05);  // Irwin-Hall of eight
}

TEST(Fill, TensorsAndSeedsAreIndependent) {
  const FillSpec spec = fill_spec(Fill::normal, 7, kShape), other = fill_spec(Fill::normal, 8, kShape);
  std::set<std::uint32_t> seen;
  for (std::int64_t i = 0; i < 100; ++i) {
    seen.insert(bits(draw(spec, Tensor::x, i)));
    seen.insert(bits(draw(other, Tensor::x, i)));
    seen.insert(bits(draw(spec, Tensor::filter, i) / spec.scale));
  }
  EXPECT_GT(seen.size(), 290u);
}

TEST(Fill, ExactSumsAreExactInHalfPrecisionMultiplicandsAndFloatSums) {
  const FillSpec spec = fill_spec(Fill::exact, 3, {.n = 1, .c = 2048, .h = 3, .w = 3, .k = 4});
  for (std::int64_t i = 0; i < 5000; ++i) {
    const float x = draw(spec, Tensor::x, i), w = draw(spec, Tensor::filter, i) / spec.exact_unit;
    EXPECT_EQ(x, std::round(x));
    EXPECT_LE(std::fabs(x), 3);
    EXPECT_EQ(w, std::round(w));
    EXPECT_LE(std::fabs(w), 2);
  }
  EXPECT_EQ(bits(spec.exact_unit) & 0x7fffffu, 0u) << "the unit is a power of two";
  EXPECT_GT(spec.exact_unit * 2, 0x1p-14f) << "a subnormal in fp16 would not be exact";
}

TEST(Fill, WideCoversItsBinades) {
  const FillSpec spec = fill_spec(Fill::wide, 3, kShape);
  int least = 100, most = -100;
  for (std::int64_t i = 0; i < kShape.x_elements(); ++i) {
    const float x = draw(spec, Tensor::x, i);
    if (std::fabs(x) < 1e-30f) continue;
    least = std::min(least, std::ilogb(x));
    most = std::max(most, std::ilogb(x));
  }
  EXPECT_LE(least, -22);
  EXPECT_GE(most, 20);
}

TEST(Fill, SpecialHoldsEveryKindOfValue) {
  const Shape shape{.n = 1, .c = 64, .h = 64, .w = 64, .k = 1};
  const FillSpec spec = fill_spec(Fill::special, 42, shape);
  int nan = 0, infinite = 0, negative_zero = 0, subnormal = 0, largest = 0;
  for (std::int64_t i = 0; i < shape.x_elements(); ++i) {
    const float x = draw(spec, Tensor::x, i);
    nan += std::isnan(x);
    infinite += std::isinf(x);
    negative_zero += bits(x) == 0x80000000u;
    subnormal += std::fpclassify(x) == FP_SUBNORMAL;
    largest += std::fabs(x) == std::numeric_limits<float>::max();
  }
  for (const int count : {nan, infinite, negative_zero, subnormal, largest}) EXPECT_GT(count, 5);
  EXPECT_LT(nan, shape.x_elements() / 1000) << "most windows stay finite";
}

TEST(Fill, SpecialHoldsEveryKindHoweverSmallTheTensor) {
  for (const Shape& shape :
       {Shape{.n = 1, .c = 1, .h = 4, .w = 8, .k = 1}, Shape{.n = 2, .c = 3, .h = 5, .w = 7, .k = 1},
        Shape{.n = 3, .c = 16, .h = 9, .w = 9, .k = 2}})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const FillSpec spec = fill_spec(Fill::special, seed, shape);
      std::set<std::uint32_t> told_apart;  // NaN, infinities, -0, +-FLT_MAX
      int small = 0;                       // subnormals and +-FLT_MIN
      for (std::int64_t i = 0; i < shape.x_elements(); ++i) {
        const float x = draw(spec, Tensor::x, i);
        if (!std::isfinite(x) || bits(x) == 0x80000000u || std::fabs(x) == std::numeric_limits<float>::max())
          told_apart.insert(bits(x));
        small += x != 0 && std::fabs(x) <= std::numeric_limits<float>::min();
      }
      EXPECT_EQ(told_apart.size(), 6u) << shape.x_elements() << " elements, seed " << seed;
      EXPECT_GE(small, 2) << shape.x_elements() << " elements, seed " << seed;
    }
  const Shape smallest{.n = 1, .c = 1, .h = 3, .w = 3, .k = 1};  // two stretches and a part of one
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const FillSpec spec = fill_spec(Fill::special, seed, smallest);
    int special = 0;
    for (std::int64_t i = 0; i < smallest.x_elements(); ++i) {
      const float magnitude = std::fabs(draw(spec, Tensor::x, i));
      special += !(magnitude > std::numeric_limits<float>::min() && magnitude < 8);
    }
    EXPECT_GE(special, 2) << "seed " << seed;
    EXPECT_LE(special, 3) << "seed " << seed;
  }
}

TEST(Fill, DeltaIsADenseGridOfFiniteFloatsAndACopyingFilter) {
  const Shape shape{.n = 1, .c = 3, .h = 130, .w = 130, .k = 5};
  const FillSpec spec = fill_spec(Fill::delta, 1, shape);
  std::set<std::uint32_t> binades;
  for (std::int64_t i = 0; i < shape.x_elements(); ++i) {
    const float x = draw(spec, Tensor::x, i);
    ASSERT_TRUE(std::isfinite(x));
    binades.insert(bits(x) >> 23);
  }
  EXPECT_EQ(binades.size(), 2u * 255u);
  std::set<std::uint32_t> of_one_row;  // of the first channel: 130 elements, evenly spread
  for (std::int64_t i = 0; i < shape.w; ++i) of_one_row.insert(bits(draw(spec, Tensor::x, i)) >> 28);
  EXPECT_EQ(of_one_row.size(), 16u);
  for (std::int64_t k = 0; k < shape.k; ++k)
    for (std::int64_t c = 0; c < shape.c; ++c)
      for (int tap = 0; tap < kTaps; ++tap)
        EXPECT_EQ(draw(spec, Tensor::filter, (k * shape.c + c) * kTaps + tap),
                  c == k % shape.c && tap == 4 ? 1 : 0);
}

}  // namespace
}  // namespace convmish
