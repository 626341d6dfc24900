// How a command says that something could not be done.
#pragma once

#include <string>

#include "core/error.hpp"
#include "report/report_files.hpp"

namespace convmish {

/// One line on stderr, whatever a file or an argument brought into the message. Gives back `code`.
ExitCode report_failure(ExitCode code, std::string message);

/// Writes the reports at the end of a command, when all else has been told. What cannot be written makes
/// `code` ExitCode::usage where it was better.
ExitCode finish_reports(ReportFiles& files, const Report& report, ExitCode code);

}  // namespace convmish
