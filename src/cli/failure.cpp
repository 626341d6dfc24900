#include "cli/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace convmish {

ExitCode report_failure(ExitCode code, std::string message) {
  std::ranges::replace_if(
      message, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  std::fputs(fmt::format("convmish-bench: {}\n", message).c_str(), stderr);  // fmt::print throws if it cannot
  return code;
}

ExitCode finish_reports(ReportFiles& files, const Report& report, ExitCode code) {
  for (std::string& failure : files.finish(report))
    code = report_failure(worse(code, ExitCode::usage), std::move(failure));
  return code;
}

}  // namespace convmish
