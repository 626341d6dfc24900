#include "core/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numeric>

namespace convmish {
namespace {

/// Linear interpolation between closest ranks (Hyndman and Fan's type 7).
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::optional<std::array<double, 2>> median_interval(const std::vector<double>& sorted) {
  constexpr std::size_t kLeast = 6;  // 2 * (1/2)^6 = 3.1 %
  if (sorted.size() < kLeast) return std::nullopt;
  namespace math = boost::math;
  using RoundDown =
      math::policies::policy<math::policies::discrete_quantile<math::policies::integer_round_down>>;
  const math::binomial_distribution<double, RoundDown> below(static_cast<double>(sorted.size()), 0.5);
  // The number of samples below the median is binomial: it falls short of `rank` with less than 2.5 %.
  auto rank = static_cast<std::size_t>(math::quantile(below, 0.025));
  if (math::cdf(below, static_cast<double>(rank)) > 0.025 && rank > 0) --rank;
  return std::array{sorted[rank], sorted[sorted.size() - 1 - rank]};
}

TimeSummary summarise_samples(std::vector<double> samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  TimeSummary time;
  time.median = quantile(sorted, 0.5);
  time.p5 = quantile(sorted, 0.05);
  time.p95 = quantile(sorted, 0.95);
  time.min = sorted.front();
  time.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : sorted) squares += (sample - time.mean) * (sample - time.mean);
  if (n > 1) time.stddev = std::sqrt(squares / (n - 1));
  time.ci95 = median_interval(sorted);
  time.samples = std::move(samples);
  return time;
}

std::optional<double> relative_half_width(const TimeSummary& time) {
  if (!time.ci95) return std::nullopt;
  return ((*time.ci95)[1] - (*time.ci95)[0]) / 2 / time.median;
}

}  // namespace convmish
