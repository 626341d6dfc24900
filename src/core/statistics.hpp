// Statistics of samples.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/result.hpp"

namespace convmish {

/// Median, quantiles, moments and interval of `samples`, which are kept in their order. At least one.
TimeSummary summarise_samples(std::vector<double> samples);

/// A 95 % confidence interval of the median that assumes nothing of the distribution: the order statistics
/// whose ranks a binomial(n, 1/2) leaves out with at most 2.5 % on either side (Conover, "Practical
/// Nonparametric Statistics", section 3.2). Nothing below six samples, which cannot give 95 %.
std::optional<std::array<double, 2>> median_interval(const std::vector<double>& sorted);

/// Half of the interval's width over the median; nothing where there is no interval.
std::optional<double> relative_half_width(const TimeSummary& time);

}  // namespace convmish
