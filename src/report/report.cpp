#include "report/report.hpp"

#include <algorithm>
#include <utility>

namespace convmish {

const FillResult* deciding_check(const CaseResult& result) {
  const auto severity = [&](Verdict verdict) {
    switch (verdict) {
      case Verdict::skipped:
        return 0;
      case Verdict::passed:
        return 2;
      case Verdict::failed:
        return 4;
      default:
        return result.verdict == Verdict::passed ? 1 : 3;  // beside fills that passed it decides nothing
    }
  };
  const auto rank = [&](const FillResult& check) {
    // Of several that did not pass the first stands: it is the one that the case's verdict tells.
    const bool passed = check.verdict == Verdict::passed;
    return std::pair{severity(check.verdict), passed ? check.error.worst_ratio : 0.0};
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
