#include "report/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/junit.hpp"

namespace convmish {

ReportFiles::ReportFiles(const ReportPaths& paths) {
  const auto add = [this](const std::filesystem::path& path, std::string (*render)(const Report&)) {
    if (path.empty()) return;
    const File added{path, render, check_writable(path)};
    const bool is_output = added.destination == Destination::standard_output;
    const auto is_same = [&](const File& other) {
      if (other.destination != added.destination) return false;
      // A pipe's name may be none that can be followed.
      if (added.destination != Destination::file) return is_output || other.path == path;
      return std::filesystem::weakly_canonical(other.path) == std::filesystem::weakly_canonical(path);
    };
    if (std::ranges::any_of(files_, is_same))
      throw InputError(fmt::format("two reports are to go to {}; want a file each", path.string()));
    if (is_output) text_stream_ = stderr;
    files_.push_back(added);
  };
  add(paths.json, to_json);
  add(paths.csv, to_csv);
  add(paths.junit, to_junit);
}

bool ReportFiles::update(const Report& report) {
  if (std::chrono::steady_clock::now() - written_ < std::chrono::seconds(1)) return false;
  for (const File& file : files_)
    if (file.destination == Destination::file) write_file(file.path, file.render(report));
  written_ = std::chrono::steady_clock::now();
  return true;
}

void ReportFiles::finish(const Report& report) {
  for (const File& file : files_) write_file(file.path, file.render(report));
}

}  // namespace convmish
