#include "core/rank_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace convmish {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using Samples = std::vector<double>;

/// Uniform in [0, 1), in steps: the fewer, the more ties. The same numbers everywhere.
Samples draw(std::mt19937_64& random, std::size_t count, double steps) {
  Samples samples(count);
  for (double& sample : samples)
    sample = std::floor(static_cast<double>(random() >> 11) * 0x1p-53 * steps) / steps;
  return samples;
}

double false_positives(std::size_t count, double steps, int trials) {
  std::mt19937_64 random(7);
  int significant = 0;
  for (int i = 0; i < trials; ++i) {
    const Samples a = draw(random, count, steps), b = draw(random, count, steps);
    significant += mann_whitney(a, b).p <= 0.05;
  }
  return static_cast<double>(significant) / trials;
}

// The expected p are those of SciPy 1.16: mannwhitneyu(a, b, method="exact" or "asymptotic"), and, where
// there are ties among few samples, the share of all itertools.combinations of the ranks.
TEST(MannWhitney, ExactWithoutTies) {
  const Samples a{1.1, 2.2, 3.3, 4.4, 5.5, 6.6}, b{7, 8, 9, 10, 11, 12};
  EXPECT_NEAR(mann_whitney(a, b).p, 0.0021645021645021645, 1e-15);
  EXPECT_FALSE(mann_whitney(a, b).b_is_less);
  EXPECT_TRUE(mann_whitney(b, a).b_is_less);
  EXPECT_EQ(mann_whitney(a, b).p, least_p(6, 6));
}

TEST(MannWhitney, ExactWithTies) {
  const Samples a{1, 2, 2, 3, 5, 8}, b{2, 4, 4, 6, 7, 9, 10};
  EXPECT_NEAR(mann_whitney(a, b).p, 0.1252913752913753, 1e-12);
  EXPECT_EQ(mann_whitney(a, b).p, mann_whitney(b, a).p);
}

TEST(MannWhitney, NormalWithTies) {
  Samples a, b;
  for (int i = 0; i < 30; ++i) a.push_back(i % 17 + 0.5 * (i % 3));
  for (int i = 0; i < 40; ++i) b.push_back(7 * i % 19 + 1);
  EXPECT_NEAR(mann_whitney(a, b).p, 0.12686937723379202, 1e-12);
}

TEST(MannWhitney, EqualSamplesAreNoEvidence) {
  EXPECT_EQ(mann_whitney(Samples(5, 1.0), Samples(7, 1.0)).p, 1);
  EXPECT_EQ(mann_whitney(Samples(50, 1.0), Samples(70, 1.0)).p, 1);
  EXPECT_EQ(mann_whitney(Samples{1}, Samples{2}).p, 1) << "one sample each";
}

TEST(MannWhitney, OneDistributionIsRarelyToldApart) {
  // The exact test of few samples keeps below its level, by what its steps leave; 0.065 is three deviations.
  EXPECT_THAT(false_positives(8, 1e6, 1000), DoubleNear(0.045, 0.02));
  EXPECT_THAT(false_positives(8, 10, 1000), DoubleNear(0.045, 0.02)) << "ties";
  EXPECT_THAT(false_positives(60, 1e6, 2000), DoubleNear(0.05, 0.015));
  EXPECT_THAT(false_positives(60, 5, 2000), DoubleNear(0.05, 0.015)) << "ties";
}

TEST(LeastP, FallsWithTheSamples) {
  EXPECT_EQ(least_p(1, 1), 1);
  EXPECT_GT(least_p(3, 3), 0.05);
  EXPECT_LT(least_p(4, 4), 0.05);
  EXPECT_LT(least_p(100, 100), 1e-30);
}

TEST(Holm, KnownAnswer) {
  // Of Holm's procedure on four p: 4 * 0.005, then 3 * 0.01, 2 * 0.03, 1 * 0.04 raised to the one before.
  EXPECT_THAT(holm_adjusted(Samples{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.06, 1e-15),
                          DoubleNear(0.02, 1e-15)));
  EXPECT_THAT(holm_adjusted(Samples{0.9, 0.8}), ElementsAre(1, 1));
  EXPECT_TRUE(holm_adjusted({}).empty());
}

}  // namespace
}  // namespace convmish
