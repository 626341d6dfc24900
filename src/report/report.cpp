#include "report/report.hpp"

#include <algorithm>
#include <utility>

namespace convmish {

bool decides(const CaseResult& result, const FillResult& check) {
  return check.verdict != Verdict::skipped &&
         (check.verdict != Verdict::mistrusted || result.verdict == Verdict::mistrusted);
}

const FillResult* deciding_check(const CaseResult& result) {
  const auto severity = [&](const FillResult& check) {
    if (!decides(result, check)) return 0;
    switch (check.verdict) {
      case Verdict::passed:
        return 1;
      case Verdict::failed:
        return 3;
      default:
        return 2;
    }
  };
  const auto rank = [&](const FillResult& check) {
    // Of several that did not pass the first stands: it is the one that the case's verdict tells.
    const bool passed = check.verdict == Verdict::passed;
    return std::pair{severity(check), passed ? check.error.worst_ratio : 0.0};
  };
  const auto found = std::ranges::max_element(result.checks, {}, rank);  // the first of equals
  return found == result.checks.end() ? nullptr : &*found;
}

bool is_unchecked(const CaseResult& result) {
  const auto skipped = [](const FillResult& check) { return check.verdict == Verdict::skipped; };
  return result.verdict == Verdict::passed && std::ranges::all_of(result.checks, skipped);
}

bool is_interrupted(const CaseResult& result) {
  return result.verdict == Verdict::skipped && result.reason == reason::interrupted;
}

std::string told_verdict(const CaseResult& result) {
  return is_unchecked(result) ? "unchecked" : std::string(to_string(result.verdict));
}

const TimeSummary* shown_time(const CaseResult& result) {
  return result.verdict == Verdict::passed && result.time_ms ? &*result.time_ms : nullptr;
}

std::optional<double> shown_median_ms(const CaseResult& result) {
  const TimeSummary* const time = shown_time(result);
  return time ? std::optional(time->median) : std::nullopt;
}

}  // namespace convmish
