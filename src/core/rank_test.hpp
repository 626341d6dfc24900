// Do two sets of samples come from one distribution? And when that is asked many times at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace convmish {

/// The two-sided Mann-Whitney test (Wilcoxon's rank sum), which assumes nothing of the distributions.
struct RankTest {
  double p = 1;            // of ranks at least this far apart, if both distributions are one
  bool b_is_less = false;  // the ranks of b are the lower ones
};

/// Up to 40 samples in all, p is exact, ties included: the distribution of the rank sum over all ways to
/// divide the ranks that were found (Streitberg and Roehmel, "Exact distributions for permutation and rank
/// tests", 1986). Beyond, by the normal distribution, corrected for ties and for continuity (Hollander,
/// Wolfe and Chicken, "Nonparametric Statistical Methods", section 4.1). Neither set is empty, and no
/// sample is NaN, which has no rank.
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

/// The least p that any samples of these counts can give.
double least_p(std::size_t a, std::size_t b);

/// Of many tests' p: each adjusted so that accepting those at or below a level is wrong in any with at most
/// that probability, however the tests depend on one another (Holm, "A simple sequentially rejective
/// multiple test procedure", 1979).
std::vector<double> holm_adjusted(std::span<const double> p);

}  // namespace convmish
