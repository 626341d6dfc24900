#include "cli/failure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "report/terminal.hpp"

namespace convmish {

ExitCode report_failure(ExitCode code, std::string message) {
  const std::string line = fmt::format("convmish-bench: {}\n", printable(std::move(message)));
  std::fputs(line.c_str(), stderr);  // fmt::print throws if it cannot
  return code;
}

ExitCode finish_reports(ReportFiles& files, const Report& report, ExitCode code) {
  for (std::string& failure : files.finish(report))
    code = report_failure(worse(code, ExitCode::usage), std::move(failure));
  return code;
}

}  // namespace convmish
