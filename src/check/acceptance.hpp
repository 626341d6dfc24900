// When an output is right: the acceptance rule, in float64, the same code on every device.
//
// A result is right if it is f(z') for some z' near the exact pre-activation z, up to the activation's own
// rounding, f = mish o mish:
//
//   delta  = (factor 2^-24 + 2.2 u) S       S = sum |x||w| + |b|,  factor = max(16, 2 sqrt(9 c))
//   lo, hi = min, max of f over [z - delta, z + delta]
//   accept   if lo - a <= y <= hi + a,      a = 32 2^-24 |f(z)| + (2 + |z|) 2^-126
//
// u is the unit roundoff of the class's multiplicands (0, 2^-11, 2^-8); 2.2 u S bounds two rounded
// multiplicands, `factor` bounds fp32 summation in any order with margin (Higham, "Accuracy and Stability
// of Numerical Algorithms", section 4.2), `a` allows two Mishes in fp32 and flushed subnormals. The negative
// tail is judged relatively.
//
// A transform (Winograd, FFT) errs by norm: an element of x meets all taps of the filter, and what that adds
// and takes away again leaves its rounding errors in all outputs of a tile, at the image's edge too, where
// the element meets few taps. For it
//
//   S      = N = max over k of (sum over c of max |x[n, c]| max |w[k, c]|) + |b[k]|, n the output's image,
//   factor = 256 more: a lone element's product errs by up to 150 of its 2^-24 in Winograd's F(4x4, 3x3), as
//            Winograd.ALoneElement... in tests/check/compare_test.cpp finds.
//
// Only fp32 gets that margin: multiplicands that are rounded behind such a transform err by several times
// what 2.2 u allows, and a variant that does so is not of the class.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

/// mish(x) = x tanh(softplus(x)) = x n / (n + 2), n = e (e + 2), e = exp(x). Right for every double,
/// infinities included: mish(-inf) = -0, the limit.
CONVMISH_HD inline double mish64(double x) {
  if (x > 40) return x;       // n / (n + 2) is 1 to float64; e^x would overflow from 709 on
  if (x < -745) return -0.0;  // x e^x is below the least subnormal (and -inf * 0 would be NaN)
  const double e = exp(x);
  const double n = e * (e + 2);
  return x * (n / (n + 2));
}

/// d mish / dx = t + x (1 - t^2) sigmoid(x), t = tanh(softplus(x)).
CONVMISH_HD inline double mish64_derivative(double x) {
  if (x > 40) return 1;
  if (x < -745) return 0;
  const double e = exp(x);
  const double n = e * (e + 2);
  const double t = n / (n + 2);
  return t + x * (1 - t) * (1 + t) * (e / (1 + e));
}

CONVMISH_HD inline double activation64(double z) {
  return mish64(mish64(z));
}
CONVMISH_HD inline double activation64_derivative(double z) {
  return mish64_derivative(mish64(z)) * mish64_derivative(z);
}

/// Where mish, and so mish o mish, has its one minimum.
inline constexpr double kActivationArgmin = -1.19245;

/// What the rule needs beside z and S: fixed for a case.
struct AcceptanceRule {
  double relative_delta = 0;  // delta / S, of a transform delta / N
  /// Finite multiplicands from here on round to an infinity in the class's format. The reference marks
  /// outputs that take one by an S that is NaN.
  double overflowing_multiplicand = HUGE_VAL;
  /// Instead: |y - f(z)| <= atol + rtol |f(z)|, whatever S. Never decides a verdict, is told beside it.
  bool allclose = false;
  double rtol = 0, atol = 0;

  CONVMISH_HD bool overflows(double multiplicand) const {
    return fabs(multiplicand) >= overflowing_multiplicand && fabs(multiplicand) <= DBL_MAX;
  }
  CONVMISH_HD double delta(double s) const { return relative_delta * s; }
};

/// The unit roundoff of a class's multiplicands.
constexpr double multiplicand_roundoff(MathClass math) {
  switch (math) {
    case MathClass::fp32:
      return 0;
    case MathClass::tf32:
    case MathClass::fp16:
      return 0x1p-11;
    case MathClass::bf16:
      return 0x1p-8;
  }
  return 0;
}

/// `exact_sums`: the fill makes every summation order exact, so that of a direct plan only the activation may
/// round.
inline AcceptanceRule acceptance_rule(MathClass math, const Shape& shape, bool exact_sums,
                                      Algorithm algorithm = Algorithm::direct) {
  const double u = multiplicand_roundoff(math);
  const double overflowing = u > 0 ? (2 - u) * 0x1p127 : HUGE_VAL;
  const bool direct = algorithm == Algorithm::direct;
  if (exact_sums && direct) return {0, overflowing};
  const double root = 2 * std::sqrt(static_cast<double>(shape.reduction()));
  return {((direct ? 0 : 256) + (root > 16 ? root : 16)) * 0x1p-24 + 2.2 * u, overflowing};
}

inline AcceptanceRule allclose_rule(double rtol, double atol) {
  AcceptanceRule rule;
  rule.allclose = true;
  rule.rtol = rtol;
  rule.atol = atol;
  return rule;
}

/// The operation's activation, as a type that judge_as() can inline on every device.
struct MishTwice {
  CONVMISH_HD double operator()(double z) const { return activation64(z); }
};

/// One output judged.
struct Judgement {
  bool right;
  double expected;     // f(z)
  double error;        // |y - f(z)|; not a number where either is not finite
  double ratio;        // error / what the rule allows on y's side of f(z); infinite where a kind is wrong
  bool zero_accepted;  // would an output of 0 have passed? Data where most would cannot prove anything
};

/// By the rule `allclose`. Where f(z) is not finite as a float, the same kind is asked for.
CONVMISH_HD inline Judgement judge_allclose(double y, double expected, const AcceptanceRule& rule) {
  const double inf = HUGE_VAL, error = fabs(y - expected);
  const double allowed = rule.atol + rule.rtol * fabs(expected);
  if (fabs(expected) <= FLT_MAX && fabs(y) <= FLT_MAX)
    return {error <= allowed, expected, error, error > 0 ? error / allowed : 0, fabs(expected) <= allowed};
  const bool same =
      (y != y && expected != expected) || (fabs(expected) > FLT_MAX && y == copysign(inf, expected));
  return {same, expected, NAN, same ? 0 : inf, false};
}

/// Judges against an activation `f` that, between its ends and kActivationArgmin, is monotonic.
template <class Activation>
CONVMISH_HD Judgement judge_as(double y, double z, double s, const AcceptanceRule& rule, Activation f) {
  if (rule.allclose) return judge_allclose(y, f(z), rule);
  const double inf = HUGE_VAL;
  if (z != z) return {y != y, z, NAN, y != y ? 0 : inf, false};
  // A multiplicand that rounds to an infinity makes an infinity, or NaN by the difference of two.
  if (s != s) return {true, f(z), NAN, 0, true};
  if (fabs(z) == inf) {  // at -inf both the limit and what x * tanh(softplus(x)) evaluates to are right
    const bool right = z > 0 ? y == inf : (y != y || fabs(y) <= 0x1p-126);
    return {right, z > 0 ? z : -0.0, NAN, right ? 0 : inf, z < 0};
  }
  const double expected = f(z);
  const double delta = rule.delta(s);
  // Where partial sums may pass FLT_MAX, some order of summation overflows to an infinity, or to NaN by
  // the difference of two: nothing definite can be asked for.
  if (s + delta > FLT_MAX) return {true, expected, NAN, 0, true};

  const double f_low = f(z - delta), f_high = f(z + delta);
  double lo = fmin(expected, fmin(f_low, f_high));
  const double hi = fmax(expected, fmax(f_low, f_high));
  if (z - delta < kActivationArgmin && kActivationArgmin < z + delta) lo = fmin(lo, f(kActivationArgmin));
  const double a = 32 * 0x1p-24 * fabs(expected) + (2 + fabs(z)) * 0x1p-126;

  const double error = fabs(y - expected);
  const double allowed = (y < expected ? expected - lo : hi - expected) + a;
  const bool finite = fabs(y) < inf, right = error <= allowed;  // false for NaN
  return {right, expected, finite ? error : NAN, finite ? error / allowed : inf, lo - a <= 0 && 0 <= hi + a};
}

CONVMISH_HD inline Judgement judge(double y, double z, double s, const AcceptanceRule& rule) {
  return judge_as(y, z, s, rule, MishTwice());
}

/// Error in units of the spacing of floats at `expected`.
CONVMISH_HD inline double ulp_error(double error, double expected) {
  const float magnitude = static_cast<float>(fabs(expected));
  std::uint32_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  int exponent = static_cast<int>(bits >> 23);
  if (exponent < 1) exponent = 1;
  return error / ldexp(1.0, exponent - 127 - 23);
}

}  // namespace convmish
