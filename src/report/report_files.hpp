// The files that a run was asked to leave its report in.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "report/files.hpp"
#include "report/report.hpp"

namespace convmish {

/// Where reports go, by format; an empty path: nowhere.
struct ReportPaths {
  std::filesystem::path json, csv, junit;
};

/// Whole at any time: a killed run leaves what was done, up to the last update() that wrote. What cannot be
/// replaced, a pipe or standard output, is written to once, at the end.
class ReportFiles {
 public:
  /// `inputs`: what the command reads (an empty path: nothing). Throws InputError where a report cannot be
  /// written, would replace an input, or two are to go to one file; changes nothing yet.
  ReportFiles(const ReportPaths& paths, const std::vector<std::filesystem::path>& inputs);

  /// Writes what can be replaced, unless that was done within the last second: a long sweep's report is long.
  /// Whether it did: a caller that is told `false` comes again with it. A file that cannot be written does
  /// not end the run: finish() tells of it.
  bool update(const Report& report);
  /// Writes all that can be written, and says of each other file why it cannot. Once: nothing may follow in a
  /// pipe.
  std::vector<std::string> finish(const Report& report);

  /// Where text for people goes: standard error where a report goes to standard output.
  std::FILE* text_stream() const { return text_stream_; }

 private:
  struct File {
    std::filesystem::path path;
    std::string (*render)(const Report&);
    Destination destination;
  };

  std::vector<File> files_;
  std::FILE* text_stream_ = stdout;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace convmish
