// A comparison of two reports as text for people.
#pragma once

#include <string>

#include "report/comparison.hpp"
#include "report/terminal.hpp"

namespace convmish {

/// What differs between the machines, a table of the cases that both reports have, why some were not judged,
/// which regressed by their verdict and how to repeat them, and the cases that only one report has.
std::string comparison_table(const ReportComparison& comparison, double max_slowdown,
                             const TerminalStyle& style);

/// "1 faster, 2 slower (1 by more than 3%), 9 tied, 3 not judged; 1 no longer right". No newline.
std::string comparison_summary(const ReportComparison& comparison, double max_slowdown,
                               const TerminalStyle& style);

}  // namespace convmish
