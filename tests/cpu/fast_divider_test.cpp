#include "variants/common/fast_divider.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace convmish {
namespace {

template <class Index>
class FastDividerTest : public testing::Test {
 protected:
  static constexpr Index kMax = std::numeric_limits<Index>::max();

  static void expect_exact(Index index, Index divisor) {
    const auto [quotient, remainder] = FastDividerOf<Index>(divisor).divide(index);
    ASSERT_EQ(quotient, index / divisor) << index << " / " << divisor;
    ASSERT_EQ(remainder, index % divisor) << index << " / " << divisor;
  }
};
using Indices = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(FastDividerTest, Indices);

TYPED_TEST(FastDividerTest, IsExactAroundEveryMultipleThatCouldRoundWrong) {
  constexpr TypeParam kMax = TestFixture::kMax, kMiddle = TypeParam{1} << (4 * sizeof(TypeParam) - 1);
  for (TypeParam divisor = 1; divisor <= 300; ++divisor) {
    for (const TypeParam quotient : {TypeParam{0}, TypeParam{1}, kMiddle, kMax / divisor}) {
      const TypeParam multiple = quotient * divisor;
      this->expect_exact(multiple, divisor);
      if (multiple > 0) this->expect_exact(multiple - 1, divisor);
      if (multiple < kMax - 1) this->expect_exact(multiple + 1, divisor);
    }
  }
}

TYPED_TEST(FastDividerTest, IsExactAtPowersOfTwoAndTheirNeighbours) {
  constexpr TypeParam kMax = TestFixture::kMax;
  for (int e = 1; e < std::numeric_limits<TypeParam>::digits; ++e) {
    const TypeParam power = TypeParam{1} << e;
    for (const TypeParam divisor : {power - 1, power, power + 1}) {
      for (const TypeParam index : {divisor - 1, divisor, kMax - 1, kMax, kMax / divisor * divisor})
        this->expect_exact(index, divisor);
    }
  }
  this->expect_exact(kMax, kMax);
  this->expect_exact(kMax - 1, kMax);
}

}  // namespace
}  // namespace convmish
