#include "variants/common/fast_divider.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace convmish {
namespace {

template <class Index>
void expect_exact(Index index, Index divisor) {
  const auto [quotient, remainder] = FastDividerOf<Index>(divisor).divide(index);
  ASSERT_EQ(quotient, index / divisor) << index << " / " << divisor;
  ASSERT_EQ(remainder, index % divisor) << index << " / " << divisor;
}

template <class Index>
class FastDividerTest : public testing::Test {};
using Indices = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(FastDividerTest, Indices);

TYPED_TEST(FastDividerTest, IsExactAroundEveryMultipleThatCouldRoundWrong) {
  using Index = TypeParam;
  constexpr Index kMax = std::numeric_limits<Index>::max(), kMiddle = Index{1} << (4 * sizeof(Index) - 1);
  for (Index divisor = 1; divisor <= 300; ++divisor) {
    for (const Index quotient : {Index{0}, Index{1}, kMiddle, kMax / divisor}) {
      const Index multiple = quotient * divisor;
      expect_exact(multiple, divisor);
      if (multiple > 0) expect_exact<Index>(multiple - 1, divisor);
      if (multiple < kMax - 1) expect_exact<Index>(multiple + 1, divisor);
    }
  }
}

TYPED_TEST(FastDividerTest, IsExactAtPowersOfTwoAndTheirNeighbours) {
  using Index = TypeParam;
  constexpr Index kMax = std::numeric_limits<Index>::max();
  for (int e = 1; e < std::numeric_limits<Index>::digits; ++e) {
    const Index power = Index{1} << e;
    for (const Index divisor : {power - 1, power, power + 1}) {
      for (const Index index : {divisor - 1, divisor, kMax - 1, kMax, kMax / divisor * divisor})
        expect_exact<Index>(index, divisor);
    }
  }
  expect_exact(kMax, kMax);
  expect_exact<Index>(kMax - 1, kMax);
}

}  // namespace
}  // namespace convmish
