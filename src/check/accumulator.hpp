// Sums and maxima over judged outputs: what each thread of either device gathers, and how two are merged.
#pragma once

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>

#include "check/acceptance.hpp"

namespace convmish {

/// Ratios are counted in quarter octaves from 2^-24 to 2^8, for the quantiles.
inline constexpr int kRatioBins = 128;

CONVMISH_HD inline int ratio_bin(double ratio) {
  if (!(ratio > 0x1p-24)) return 0;
  if (ratio >= 0x1p8) return kRatioBins - 1;  // infinity too, which no int can hold
  const int bin = static_cast<int>(4 * log2(ratio)) + 4 * 24;
  return bin < 0 ? 0 : bin >= kRatioBins ? kRatioBins - 1 : bin;
}
/// The upper end of a bin.
inline double ratio_bin_limit(int bin) {
  return std::exp2((bin + 1 - 4 * 24) / 4.0);
}

/// One output with its reference, by flat index n k p q.
struct ReferencePoint {
  std::int64_t index = 0;
  float y = 0;
  double z = 0;  // pre-activation
  double s = 0;  // sum of |x||w| plus |b|
};

struct ErrorAccumulator {
  std::int64_t compared = 0, wrong = 0, nan_outputs = 0, zero_accepted = 0;
  ReferencePoint worst, first_wrong{.index = INT64_MAX};
  double worst_ratio = -1;
  double max_abs = 0, max_rel = 0, max_ulp = 0;
  double activation_ulp = 0;       // largest where 0 is not accepted: flushed subnormals aside
  double activation_ulp_z = 0;     // the pre-activation there
  double first_nonfinite_z = NAN;  // the nearest to 0 where y is not finite and f(z) is
  double error_squares = 0, expected_squares = 0;
  double fingerprint_squares = 0;
  std::int64_t fingerprint_count = 0;

  /// `q`: sqrt(sum (x w)^2), or 0 where no fingerprint is taken. Returns the ratio.
  CONVMISH_HD double add(const ReferencePoint& point, double q, const AcceptanceRule& rule) {
    const double y = static_cast<double>(point.y);
    const Judgement j = judge(y, point.z, point.s, rule);
    ++compared;
    zero_accepted += j.zero_accepted;
    if (!j.right) {
      ++wrong;
      if (point.index < first_wrong.index) first_wrong = point;
    }
    if (y != y && j.expected == j.expected) ++nan_outputs;
    if (j.ratio > worst_ratio || (j.ratio == worst_ratio && point.index < worst.index)) {
      worst_ratio = j.ratio;
      worst = point;
    }
    if (fabs(j.expected) <= FLT_MAX && !(fabs(y) <= FLT_MAX)) note_nonfinite(point.z);
    if (!(j.error >= 0)) return j.ratio;  // no finite error to sum

    max_abs = fmax(max_abs, j.error);
    if (fabs(j.expected) >= FLT_MIN) max_rel = fmax(max_rel, j.error / fabs(j.expected));
    const double ulp = ulp_error(j.error, j.expected);
    max_ulp = fmax(max_ulp, ulp);
    if (!j.zero_accepted) note_ulp(ulp, point.z);
    error_squares += j.error * j.error;
    expected_squares += j.expected * j.expected;
    if (q > 0) {
      const double slope = fabs(activation64_derivative(point.z));
      if (slope > 0.02) {
        // In units of sqrt(2/3) 2^-11 Q the error is nearly a constant of the arithmetic, whatever c.
        const double r = j.error / (slope * 0.81649658092772603 * 0x1p-11 * q);
        fingerprint_squares += r * r;
        ++fingerprint_count;
      }
    }
    return j.ratio;
  }

  CONVMISH_HD void merge(const ErrorAccumulator& other) {
    compared += other.compared;
    wrong += other.wrong;
    nan_outputs += other.nan_outputs;
    zero_accepted += other.zero_accepted;
    if (other.first_wrong.index < first_wrong.index) first_wrong = other.first_wrong;
    if (other.worst_ratio > worst_ratio ||
        (other.worst_ratio == worst_ratio && other.worst.index < worst.index)) {
      worst_ratio = other.worst_ratio;
      worst = other.worst;
    }
    max_abs = fmax(max_abs, other.max_abs);
    max_rel = fmax(max_rel, other.max_rel);
    max_ulp = fmax(max_ulp, other.max_ulp);
    note_ulp(other.activation_ulp, other.activation_ulp_z);
    note_nonfinite(other.first_nonfinite_z);
    error_squares += other.error_squares;
    expected_squares += other.expected_squares;
    fingerprint_squares += other.fingerprint_squares;
    fingerprint_count += other.fingerprint_count;
  }

 private:
  // Ties go to the z nearest to 0, so that the order of merging does not show.
  CONVMISH_HD void note_ulp(double ulp, double z) {
    if (!(ulp > activation_ulp || (ulp == activation_ulp && fabs(z) < fabs(activation_ulp_z)))) return;
    activation_ulp = ulp;
    activation_ulp_z = z;
  }
  CONVMISH_HD void note_nonfinite(double z) {
    if (!(fabs(z) >= fabs(first_nonfinite_z))) first_nonfinite_z = z == z ? z : first_nonfinite_z;
  }
};

}  // namespace convmish
