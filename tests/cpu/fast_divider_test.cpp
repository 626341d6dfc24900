#include "variants/common/fast_divider.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace convmish {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

void expect_exact(std::int64_t index, std::int64_t divisor) {
  const auto [quotient, remainder] = FastDivider(divisor).divide(index);
  ASSERT_EQ(quotient, index / divisor) << index << " / " << divisor;
  ASSERT_EQ(remainder, index % divisor) << index << " / " << divisor;
}

TEST(FastDivider, IsExactAroundEveryMultipleThatCouldRoundWrong) {
  for (std::int64_t divisor = 1; divisor <= 300; ++divisor) {
    for (const std::int64_t quotient :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 31, kMax / divisor}) {
      const std::int64_t multiple = quotient * divisor;
      expect_exact(multiple, divisor);
      if (multiple > 0) expect_exact(multiple - 1, divisor);
      if (multiple < kMax - 1) expect_exact(multiple + 1, divisor);
    }
  }
}

TEST(FastDivider, IsExactAtPowersOfTwoAndTheirNeighbours) {
  for (int e = 1; e < 63; ++e) {
    for (const std::int64_t divisor :
         {(std::int64_t{1} << e) - 1, std::int64_t{1} << e, (std::int64_t{1} << e) + 1}) {
      for (const std::int64_t index : {divisor - 1, divisor, kMax - 1, kMax, kMax / divisor * divisor})
        expect_exact(index, divisor);
    }
  }
  expect_exact(kMax, kMax);
  expect_exact(kMax - 1, kMax);
}

}  // namespace
}  // namespace convmish
