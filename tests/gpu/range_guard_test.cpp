#include <gtest/gtest.h>

#include "tests/gpu/gpu_fixture.hpp"
#include "tests/gpu/range_guard_misses.hpp"

namespace convmish {
namespace {

class RangeGuardTest : public GpuTest {};

// Its first two steps are guesses that may only err on the side of looking closer.
TEST_F(RangeGuardTest, RaisesForTheFloatsThatLoseBitsAndNoOthers) {
  const RangeGuardMisses misses = count_range_guard_misses();
  EXPECT_EQ(misses.of_one_term, 0u);
  EXPECT_EQ(misses.of_two_terms, 0u);
}

}  // namespace
}  // namespace convmish
