// A report as a table for spreadsheets and scripts: RFC 4180, UTF-8, a row a case.
//
// Names and units are those of the JSON report; what was not measured is an empty cell, and what is no text
// is U+FFFD, as in the JUnit report. Of several checks the errors are those of the one that decided. `device`
// is the kind and `device_name` what the driver calls it; `verdict` is "unchecked" where a case passed
// without a check; `samples` is their count.
#pragma once

#include <string>

#include "report/report.hpp"

namespace convmish {

std::string to_csv(const Report& report);

}  // namespace convmish
