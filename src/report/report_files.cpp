#include "report/report_files.hpp"

#include "report/files.hpp"
#include "report/json.hpp"

namespace convmish {

ReportFiles::ReportFiles(const ReportPaths& paths) {
  if (!paths.json.empty()) files_.push_back({paths.json, to_json, false});
  for (File& file : files_) {
    const Destination destination = check_writable(file.path);
    file.replaceable = destination == Destination::file;
    if (destination == Destination::standard_output) text_stream_ = stderr;
  }
}

bool ReportFiles::update(const Report& report) {
  if (std::chrono::steady_clock::now() - written_ < std::chrono::seconds(1)) return false;
  for (const File& file : files_)
    if (file.replaceable) write_file(file.path, file.render(report));
  written_ = std::chrono::steady_clock::now();
  return true;
}

void ReportFiles::finish(const Report& report) {
  for (const File& file : files_) write_file(file.path, file.render(report));
}

}  // namespace convmish
