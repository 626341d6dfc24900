#include "check/summary.hpp"

#include <cmath>

#include "check/tensor_view.hpp"

namespace convmish {
namespace {

double quantile(const RatioHistogram& ratios, double share) {
  std::uint64_t total = 0;
  for (const auto count : ratios) total += count;
  std::uint64_t seen = 0;
  for (int bin = 0; bin < kRatioBins; ++bin) {
    seen += ratios[static_cast<std::size_t>(bin)];
    if (static_cast<double>(seen) >= share * static_cast<double>(total)) return ratio_bin_limit(bin);
  }
  return 0;
}

OutputAt locate(const ReferencePoint& point, const Shape& shape) {
  const Chunk whole{0, shape.n, 0, shape.k, 0, shape.p(), shape.q()};
  const auto at = whole.at(point.index);
  return {at.n, at.k, at.p, at.q, static_cast<double>(point.y), activation64(point.z), point.z};
}

}  // namespace

ErrorSummary summarise(const ErrorAccumulator& sums, const RatioHistogram& ratios, const Comparison& of) {
  ErrorSummary e;
  e.compared = sums.compared;
  e.wrong = sums.wrong;
  e.nan_outputs = sums.nan_outputs;
  e.worst_ratio = std::fmax(sums.worst_ratio, 0);
  e.p999_ratio = std::fmin(quantile(ratios, 0.999), e.worst_ratio);  // a bin's end may lie beyond
  e.max_abs = sums.max_abs;
  e.max_rel = sums.max_rel;
  e.max_ulp = sums.max_ulp;
  e.relative_frobenius = std::sqrt(sums.error_squares / sums.expected_squares);
  if (sums.compared > 0) {
    e.zero_accepted_share = static_cast<double>(sums.zero_accepted) / static_cast<double>(sums.compared);
    e.worst_at = locate(sums.worst, of.shape);
  }
  if (sums.wrong > 0) e.first_wrong_at = locate(sums.first_wrong, of.shape);
  if (of.fingerprint && sums.fingerprint_count > 0) {
    e.fingerprint = std::sqrt(sums.fingerprint_squares / static_cast<double>(sums.fingerprint_count));
    e.consistent_with = consistent_with(*e.fingerprint);
  }
  if (of.activation_only) {
    e.activation_ulp = sums.activation_ulp;
    e.activation_ulp_z = sums.activation_ulp_z;
    if (!std::isnan(sums.first_nonfinite_z)) e.first_nonfinite_z = sums.first_nonfinite_z;
  }
  return e;
}

std::string consistent_with(double r) {
  if (r <= 0.1) return "fp32";
  if (r >= 0.5 && r <= 1.2) return "tf32 or fp16, rounded to nearest";
  if (r > 1.2 && r <= 2.5) return "tf32, truncated";
  if (r >= 4 && r <= 8) return "bf16";
  return "none";
}

double fingerprint_limit(MathClass math) {
  switch (math) {
    case MathClass::fp32:
      return 0.1;
    case MathClass::tf32:
    case MathClass::fp16:
      return 2.5;
    case MathClass::bf16:
      return 8;
  }
  return 0;
}

bool fits_class(const ErrorSummary& error, MathClass declared) {
  return !error.fingerprint || *error.fingerprint <= fingerprint_limit(declared);
}

}  // namespace convmish
