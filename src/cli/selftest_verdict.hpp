// What a case of selftest proves.
#pragma once

#include <algorithm>
#include <string>

#include "core/result.hpp"
#include "run/reasons.hpp"

namespace convmish {

/// A mutant is caught only by a verdict against it: `mistrusted` says that the check was too weak, `skipped`
/// that there was none.
inline bool is_caught(const CaseResult& result) {
  return result.verdict == Verdict::failed || result.verdict == Verdict::crashed ||
         result.verdict == Verdict::timed_out;
}

/// An honest variant that cannot run here is not rejected.
inline bool is_rejected(const CaseResult& result) {
  return result.verdict != Verdict::passed && result.verdict != Verdict::skipped;
}

struct Finding {
  std::string where;  // the fill whose check decided, or the step
  std::string detail;
};

/// What was first found against a case; empty where nothing was.
inline Finding first_finding(const CaseResult& result) {
  if (result.verdict == Verdict::passed || result.verdict == Verdict::skipped) return {"", result.detail};
  if (result.verdict == Verdict::crashed || result.verdict == Verdict::timed_out)
    return {"isolation", result.detail};
  const auto check = std::ranges::find(result.checks, result.verdict, &FillResult::verdict);
  if (check != result.checks.end()) return {std::string(to_string(*check->fill)), check->detail};
  return {"timing", result.detail};
}

}  // namespace convmish
