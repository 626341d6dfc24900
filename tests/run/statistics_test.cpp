#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/ceiling.hpp"

namespace convmish {
namespace {

TEST(Statistics, SummarisesKnownSamples) {
  const TimeSummary time = summarise_samples({5, 1, 3, 2, 4});
  EXPECT_EQ(time.median, 3);
  EXPECT_EQ(time.min, 1);
  EXPECT_EQ(time.mean, 3);
  EXPECT_DOUBLE_EQ(time.p5, 1.2);
  EXPECT_DOUBLE_EQ(time.p95, 4.8);
  EXPECT_DOUBLE_EQ(time.stddev, std::sqrt(2.5));
  EXPECT_EQ(time.samples, (std::vector<double>{5, 1, 3, 2, 4})) << "launch order is kept";
  EXPECT_FALSE(time.ci95) << "five samples cannot give 95 %";
}

// Conover's table of the sign test: the ranks (from 1) of the 95 % interval of a median.
TEST(Statistics, IntervalHasTheTabulatedRanks) {
  const auto ranks = [](std::size_t n) {
    std::vector<double> sorted(n);
    for (std::size_t i = 0; i < n; ++i) sorted[i] = static_cast<double>(i + 1);
    return median_interval(sorted).value();
  };
  EXPECT_EQ(ranks(6), (std::array<double, 2>{1, 6}));
  EXPECT_EQ(ranks(10), (std::array<double, 2>{2, 9}));
  EXPECT_EQ(ranks(20), (std::array<double, 2>{6, 15}));
  EXPECT_EQ(ranks(50), (std::array<double, 2>{18, 33}));
}

TEST(Statistics, IntervalHoldsTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> skewed(1);
  const double median = std::log(2.0);
  int held = 0;
  const int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = skewed(random);
    std::sort(samples.begin(), samples.end());
    const auto interval = median_interval(samples).value();
    held += interval[0] <= median && median <= interval[1];
  }
  EXPECT_GE(held, trials * 0.945);
  EXPECT_LE(held, trials * 0.985);
}

TEST(Ceiling, HeadlineFloorsAreThoseOfTheDesign) {
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

TEST(Ceiling, HasNoFloorWhereNoRateIsKnown) {
  EXPECT_FALSE(floor_of({.n = 1, .c = 1, .h = 3, .w = 3, .k = 1}, Pipe::ffma, 1, Algorithm::direct, {}));
}

}  // namespace
}  // namespace convmish
