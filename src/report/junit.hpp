// A report as JUnit XML, for CI servers: as Jenkins's xUnit plugin describes it (its junit-10.xsd).
//
// A test suite a shape, a test case a case. `failed` and `mistrusted` are failures; `crashed` and `timed_out`
// errors; `skipped` is skipped, and so is what passed without a check: only what was checked, and is right,
// passes. A case's time is the median of its launches, in seconds. What did not pass says how to repeat it.
#pragma once

#include <string>

#include "report/report.hpp"

namespace convmish {

std::string to_junit(const Report& report);

}  // namespace convmish
