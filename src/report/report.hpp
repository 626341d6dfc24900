// A whole run as one value, the source of every output: tables, JSON, CSV, JUnit XML.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ceiling.hpp"
#include "core/plan.hpp"
#include "core/result.hpp"

namespace convmish {

inline constexpr std::string_view kToolName = "convmish-bench";

/// Of the JSON report. A new key raises `minor`; a key renamed, removed or given another meaning raises
/// `major`, and reports of different majors are not comparable.
struct SchemaVersion {
  int major = 1;
  int minor = 4;

  bool operator==(const SchemaVersion&) const = default;
};
inline constexpr SchemaVersion kSchemaVersion{};

/// What was asked for, with what the tool chose where nothing was asked for.
struct ReportPlan {
  RunOptions options;         // shapes and fills as run, defaults filled in
  std::string device_reason;  // why this device: "asked for", "auto: the first CUDA device"
  std::string shape_reason;   // why these shapes: "asked for", "default: ..."
  std::string baseline;       // name of the variant that `speedup` is told against; empty: none
};

struct Report {
  SchemaVersion schema_version = kSchemaVersion;
  Environment environment;
  std::optional<DeviceCeilings> ceilings;  // absent where no variant was timed
  ReportPlan plan;
  std::vector<CaseResult> cases;
};

/// Whether a check says something of its case: not where the fill does not apply, nor where it proved nothing
/// and others decided.
bool decides(const CaseResult& result, const FillResult& check);

/// The check whose fill and error stand for the case: of those that decide the first that failed, else the
/// first that did not pass, else the one nearest to failing. Null when the case was not checked.
const FillResult* deciding_check(const CaseResult& result);

/// Whether a case counts as passed without evidence: no check, or none that applied.
bool is_unchecked(const CaseResult& result);

/// Whether the run ended before the case did: what it would have been is not known.
bool is_interrupted(const CaseResult& result);

/// The verdict as people are told it: "unchecked" is not "passed".
std::string told_verdict(const CaseResult& result);

/// The time of what passed alone: that of a wrong kernel means nothing. Null where there is none.
const TimeSummary* shown_time(const CaseResult& result);

/// Its median.
std::optional<double> shown_median_ms(const CaseResult& result);

}  // namespace convmish
