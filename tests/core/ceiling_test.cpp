#include "core/ceiling.hpp"

#include <gtest/gtest.h>

namespace convmish {
namespace {

// 1.048e6 bytes at least, 150.5e6 FLOPs, 131072 outputs.
constexpr Shape kShape{.n = 1, .c = 64, .h = 34, .w = 34, .k = 128};
constexpr Ceilings kCeilings{.dram_bytes = 1e12,
                             .ffma_flops = 1e13,
                             .tensor_tf32_flops = 1e14,
                             .tensor_fp16_flops = 2e14,
                             .special_functions = 1e12};

double floor_ms(Pipe pipe) {
  return floor_of(kShape, pipe, 1, Algorithm::direct, kCeilings)->ms;
}

TEST(FloorOf, GivesTheHeadlineTheFloorsOfTheDesign) {
  const Shape headline{.n = 64, .c = 64, .h = 256, .w = 256, .k = 128};
  const Ceilings h200{.dram_bytes = 4.22e12,
                      .ffma_flops = 50.4e12,
                      .tensor_tf32_flops = 369e12,
                      .tensor_fp16_flops = 700e12,
                      .special_functions = 4.2e12};
  const auto floor = [&](Pipe pipe, int products) {
    return floor_of(headline, pipe, products, Algorithm::direct, h200).value();
  };
  EXPECT_NEAR(floor(Pipe::ffma, 1).ms, 12.1, 0.05);
  EXPECT_EQ(floor(Pipe::ffma, 1).binding_ceiling, "ffma");
  EXPECT_NEAR(floor(Pipe::tensor_tf32, 1).ms, 1.65, 0.005);
  EXPECT_NEAR(floor(Pipe::tensor_fp16, 1).ms, 0.87, 0.005);
  EXPECT_NEAR(floor(Pipe::tensor_fp16, 3).ms, 2.6, 0.01);
  EXPECT_NEAR(floor(Pipe::unknown, 1).ms, 0.756, 0.001);
  EXPECT_EQ(floor(Pipe::unknown, 1).binding_ceiling, "dram");
  EXPECT_NEAR(floor_of(headline, Pipe::ffma, 1, Algorithm::transform, h200)->ms, 0.756, 0.001);
}

TEST(FloorOf, CountsSpecialFunctions) {
  const auto floor = floor_of(kShape, Pipe::unknown, 1, Algorithm::direct, {.special_functions = 1e12});
  EXPECT_EQ(floor->binding_ceiling, "special_function");
  EXPECT_DOUBLE_EQ(floor->ms, 1e3 * 3 * static_cast<double>(kShape.y_elements()) / 1e12);
}

TEST(FloorOf, IsNoneWithoutARate) {
  EXPECT_FALSE(floor_of(kShape, Pipe::ffma, 1, Algorithm::direct, {}));
  EXPECT_FALSE(floor_of(kShape, Pipe::ffma, 1, Algorithm::direct, {.tensor_tf32_flops = 1e14}));
}

TEST(DeviceCeilings, TakeTheDataSheetsRateWhereNoneWasMeasured) {
  const DeviceCeilings ceilings{.measured = {.rates = {.dram_bytes = 0.8e12, .special_functions = 4e12}},
                                .data_sheet = {.dram_bytes = 1e12, .tensor_fp16_flops = 2e14}};
  const Ceilings best = ceilings.best();
  EXPECT_EQ(best.dram_bytes, 0.8e12);
  EXPECT_EQ(best.tensor_fp16_flops, 2e14);
  EXPECT_EQ(best.special_functions, 4e12);
  EXPECT_FALSE(best.ffma_flops);
}

std::optional<Floor> least(Pipe pipe, std::int64_t l2_bytes, int products = 1,
                           Algorithm algorithm = Algorithm::direct) {
  Ceilings data_sheet = kCeilings;
  data_sheet.special_functions.reset();  // no sheet tells them
  return least_possible(kShape, pipe, products, algorithm, data_sheet, l2_bytes);
}

TEST(LeastPossible, IsBelowTheFloorOfTheSameRates) {
  EXPECT_LT(least(Pipe::ffma, 0)->ms, floor_ms(Pipe::ffma));
  EXPECT_GT(least(Pipe::ffma, 0)->ms, floor_ms(Pipe::ffma) / 2);
  EXPECT_LT(least(Pipe::unknown, 0)->ms, floor_ms(Pipe::unknown));
  EXPECT_GT(least(Pipe::unknown, 0)->ms, floor_ms(Pipe::unknown) / 2);
}

TEST(LeastPossible, CountsNoBytesThatTheCacheMayHold) {
  const auto bytes = static_cast<std::int64_t>(kShape.least_bytes());
  // A quarter stays in the cache from before, and a quarter of the output after.
  EXPECT_NEAR(least(Pipe::unknown, bytes / 4)->ms, least(Pipe::unknown, 0)->ms / 2, 1e-9);
  EXPECT_FALSE(least(Pipe::unknown, bytes / 2 + 1));
  EXPECT_EQ(least(Pipe::ffma, bytes)->binding_ceiling, "ffma");  // arithmetic has no cache
}

TEST(LeastPossible, CountsTheProductsThatAreDeclared) {
  EXPECT_DOUBLE_EQ(least(Pipe::tensor_fp16, 1 << 30, 3)->ms, 3 * least(Pipe::tensor_fp16, 1 << 30)->ms);
}

TEST(LeastPossible, IsOfBytesAloneWhereTheArithmeticIsNotKnown) {
  EXPECT_EQ(least(Pipe::ffma, 0, 1, Algorithm::transform)->binding_ceiling, "dram");
  EXPECT_EQ(least(Pipe::unknown, 0)->binding_ceiling, "dram");
  EXPECT_FALSE(least_possible(kShape, Pipe::ffma, 1, Algorithm::direct, {}, 0));
}

}  // namespace
}  // namespace convmish
