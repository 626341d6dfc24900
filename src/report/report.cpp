#include "report/report.hpp"

#include <algorithm>
#include <utility>

namespace convmish {

const FillResult* deciding_check(const CaseResult& result) {
  const auto severity = [](Verdict verdict) {
    switch (verdict) {
      case Verdict::skipped:
        return 0;
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
    return std::pair{severity(check.verdict), passed ? check.error.worst_ratio : 0.0};
  };
  const auto found = std::ranges::max_element(result.checks, {}, rank);  // the first of equals
  return found == result.checks.end() ? nullptr : &*found;
}

}  // namespace convmish
