// Results as text for people.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "report/terminal.hpp"

namespace convmish {

/// All cases of one shape on one device: a header with the counts, a table with the fastest first within
/// each math class, footnotes, then what did not pass with the command that repeats it, then what was
/// skipped. `baseline` names the variant that speed-ups are told against. Columns that do not fit the
/// width are left out, least needed first, and named.
std::string shape_table(std::span<const CaseResult> cases, const DeviceInfo& device,
                        std::string_view baseline, const TerminalStyle& style);

/// What those columns mean that the cases' tables have; for once at the end of a run.
std::string table_legend(std::span<const CaseResult> cases, const TerminalStyle& style);

/// "12 passed, 1 skipped, 0 failed", other verdicts where there are any. No newline.
std::string summary_line(std::span<const CaseResult> cases, const TerminalStyle& style);

}  // namespace convmish
