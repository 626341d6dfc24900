#include "check/multiplicand.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace convmish {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Format {
  Multiplicands to;
  int significand;  // bits, the implicit one included
  int least_exponent;
  double largest;
};
constexpr Format kFormats[] = {
    {Multiplicands::tf32, 11, -126, 0x1.ffcp127},
    {Multiplicands::tf32_even, 11, -126, 0x1.ffcp127},
    {Multiplicands::bf16, 8, -126, 0x1.fep127},
    {Multiplicands::fp16, 11, -14, 65504},
};

/// To the nearest multiple of the spacing, by the library's rounding: another way than the code under test.
double rounded(const Format& format, double value) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double spacing = std::ldexp(1.0, exponent - format.significand + 1);
  const double steps = value / spacing;
  const double to = spacing * (format.to == Multiplicands::tf32 ? std::round(steps) : std::nearbyint(steps));
  return std::fabs(to) > format.largest ? std::copysign(HUGE_VAL, value) : to;
}

TEST(Multiplicand, IsTheNearestOfItsFormat) {
  const FillSpec spec = fill_spec(Fill::delta, 7, {.n = 1, .c = 1, .h = 300, .w = 300, .k = 1});
  for (const Format& format : kFormats) {
    const auto expect_nearest = [&](float value) {
      EXPECT_EQ(static_cast<double>(round_multiplicand(format.to, value)),
                rounded(format, static_cast<double>(value)))
          << value << " in format " << static_cast<int>(format.to);
    };
    for (std::int64_t i = 0; i < spec.shape.x_elements(); ++i) {
      const float value = draw(spec, Tensor::x, i);
      // In TF32 and bf16, subnormals keep the spacing of the least normal floats: not fewer bits of their
      // own.
      if (std::fabs(value) >= 0x1p-126f) expect_nearest(value);
    }
    for (const float tie : {1 + 0x1p-11f, 1 + 0x3p-11f, 1 + 0x1p-8f, 1 + 0x3p-8f, 65519.0f, 65520.0f,
                            0x1p-25f, 0x3p-25f, 0x1.fffffep127f})
      for (const float value : {tie, -tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInf)})
        if (std::isfinite(value)) expect_nearest(value);
  }
}

TEST(Multiplicand, TruncationGoesTowardsZero) {
  EXPECT_EQ(round_multiplicand(Multiplicands::tf32_truncated, 1 + 0x1.ffp-11f), 1);
  EXPECT_EQ(round_multiplicand(Multiplicands::tf32_truncated, -1 - 0x1.ffp-11f), -1);
}

TEST(Multiplicand, KeepsWhatIsNotFinite) {
  for (const Format& format : kFormats) {
    EXPECT_EQ(round_multiplicand(format.to, -kInf), -kInf);
    EXPECT_TRUE(std::isnan(round_multiplicand(format.to, std::nanf(""))));
  }
  EXPECT_EQ(round_multiplicand(Multiplicands::exact, 0.1f), 0.1f);
}

}  // namespace
}  // namespace convmish
