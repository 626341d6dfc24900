// From accumulated sums to the figures of a report.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "check/accumulator.hpp"
#include "core/device.hpp"
#include "core/result.hpp"

namespace convmish {

using RatioHistogram = std::array<std::uint64_t, kRatioBins>;

ErrorSummary summarise(const ErrorAccumulator& sums, const RatioHistogram& ratios, const Comparison& of);

/// The arithmetic that a fingerprint R shows; measured for c = 3 ... 2048 on the `normal` fill: fp32
/// 0.001-0.006, TF32 or fp16 rounded to nearest 0.73-0.75, TF32 truncated 1.8-2.0, bf16 5.9.
std::string consistent_with(double fingerprint);

/// The largest R with which a case passes as its declared class.
double fingerprint_limit(MathClass math);

/// Whether the fingerprint, where there is one, keeps within the limit of the class.
bool fits_class(const ErrorSummary& error, MathClass declared);

}  // namespace convmish
