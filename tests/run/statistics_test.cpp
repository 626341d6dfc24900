#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

}  // namespace
}  // namespace convmish
