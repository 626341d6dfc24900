// Two reports, case by case: what became faster or slower, what is no longer right.
//
// Cases are the same by variant, math class, layout, device kind and shape. Times are judged by their
// samples, with the two-sided Mann-Whitney test at a level of 5 % for all cases of a comparison together
// (Holm's adjustment): where nothing changed, one comparison of 20 on average calls anything faster or
// slower. Not judged are cases whose samples are so few that no such test could tell them apart, and noisy
// ones, whose clocks moved or were held down. The samples of a run share its clocks, memory addresses and
// temperature, which another run has otherwise; no test of samples sees that. So a regression must be
// significant *and* change the median by more than is allowed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "report/report.hpp"

namespace convmish {

/// A report and what messages call it.
struct NamedReport {
  std::string name;
  const Report* report;  // outlives what is made of it
};

/// Of a case's median, as far as its samples show one.
enum class TimeChange { faster, tie, slower, not_judged };

/// A case that both reports have.
struct CasePair {
  const CaseResult* before;
  const CaseResult* after;
  std::optional<double> median_change;  // new / old - 1; nothing unless both are timed and can be compared
  std::optional<double> p;              // adjusted; nothing where not judged
  TimeChange change = TimeChange::not_judged;
  std::string not_judged;   // why
  bool regression = false;  // slower by more than is allowed, or passed and failed, crashed or interrupted
};

struct ReportComparison {
  std::vector<CasePair> pairs;  // in the order of the new report
  std::vector<const CaseResult*> only_before, only_after;
  std::vector<std::string> differences;  // of the machines: "driver 580.95, now 590.44"

  bool has_regression() const;
};

/// A report's cases, to be found by what makes a case the same. The report outlives it.
class CaseIndex {
 public:
  /// Throws InputError for a case that stands twice.
  explicit CaseIndex(const NamedReport& report);

  /// The same case; null where the report has none.
  const CaseResult* find(const CaseResult& result) const;

 private:
  using Key = std::tuple<std::string, MathClass, Layout, DeviceKind, std::array<std::int64_t, 5>>;
  static Key key_of(const CaseResult& result);

  std::map<Key, const CaseResult*> cases_;
};

/// `max_slowdown`: of the median, relative; 0.03 allows 3 %. Throws InputError for a case that stands twice
/// in one report.
ReportComparison compare_reports(const NamedReport& before, const NamedReport& after, double max_slowdown);

}  // namespace convmish
