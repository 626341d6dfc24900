#include "core/rank_test.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>

namespace convmish {
namespace {

constexpr std::size_t kMostExact = 40;  // samples: C(40, 20) is still an integer to a double

/// Twice the ranks of both sets together, a's first: the mean rank of equal values is a half at most.
struct Ranks {
  std::vector<std::size_t> doubled;
  double ties = 0;  // sum of t^3 - t over groups of t equal values
};

Ranks rank(std::span<const double> a, std::span<const double> b) {
  std::vector<double> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });

  Ranks ranks{.doubled = std::vector<std::size_t>(values.size())};
  for (std::size_t first = 0, end; first < order.size(); first = end) {
    for (end = first + 1; end < order.size() && values[order[end]] == values[order[first]];) ++end;
    for (std::size_t i = first; i < end; ++i) ranks.doubled[order[i]] = first + 1 + end;
    const auto group = static_cast<double>(end - first);
    ranks.ties += group * group * group - group;
  }
  return ranks;
}

/// The share of the ways to choose `count` of the ranks whose sum is as far from the middle as `sum`.
double exact_p(const std::vector<std::size_t>& doubled_ranks, std::size_t count, std::size_t sum) {
  const std::size_t total = std::accumulate(doubled_ranks.begin(), doubled_ranks.end(), std::size_t{0});
  // ways[j][s]: to choose j of the ranks seen so far that sum up to s.
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(total + 1));
  ways[0][0] = 1;
  for (const std::size_t rank : doubled_ranks)
    for (std::size_t j = count; j > 0; --j)
      for (std::size_t s = total; s >= rank; --s) ways[j][s] += ways[j - 1][s - rank];

  const double middle = static_cast<double>(total * count) / static_cast<double>(doubled_ranks.size());
  const double distance = std::fabs(static_cast<double>(sum) - middle);
  double extreme = 0, all = 0;
  for (std::size_t s = 0; s <= total; ++s) {
    all += ways[count][s];
    // Sums are integers and the middle may be none: what is as far off must not fall short by a rounding.
    if (std::fabs(static_cast<double>(s) - middle) >= distance - 1e-6) extreme += ways[count][s];
  }
  return extreme / all;
}

}  // namespace

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  const Ranks ranks = rank(a, b);
  const auto b_ranks = std::span(ranks.doubled).subspan(a.size());
  const std::size_t b_sum = std::accumulate(b_ranks.begin(), b_ranks.end(), std::size_t{0});
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), all = n + m;
  const double from_middle = static_cast<double>(b_sum) / 2 - m * (all + 1) / 2;
  RankTest test{.b_is_less = from_middle < 0};
  if (ranks.doubled.size() <= kMostExact) {
    test.p = exact_p(ranks.doubled, b.size(), b_sum);
  } else {
    const double variance = n * m / 12 * (all + 1 - ranks.ties / (all * (all - 1)));
    const double distance = std::fmax(std::fabs(from_middle) - 0.5, 0);
    if (variance > 0)  // all samples equal: nothing to tell apart
      test.p = 2 * boost::math::cdf(
                       boost::math::complement(boost::math::normal(), distance / std::sqrt(variance)));
    test.p = std::fmin(test.p, 1);
  }
  return test;
}

double least_p(std::size_t a, std::size_t b) {
  std::vector<double> ascending(a + b);  // all of a below all of b
  std::iota(ascending.begin(), ascending.end(), 0.0);
  return mann_whitney(std::span(ascending).first(a), std::span(ascending).subspan(a)).p;
}

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::fmax(largest, static_cast<double>(p.size() - i) * p[order[i]]);
    adjusted[order[i]] = std::fmin(largest, 1);
  }
  return adjusted;
}

}  // namespace convmish
