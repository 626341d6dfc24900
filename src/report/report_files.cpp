#include "report/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/error.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/junit.hpp"

namespace convmish {

namespace {

/// To be compared with other paths; empty where it has none, as a pipe's.
std::filesystem::path full_path(const std::filesystem::path& path) {
  std::error_code error;
  // Of a file that is not there yet, weakly_canonical leaves a relative path.
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? std::filesystem::path() : std::filesystem::weakly_canonical(absolute, error);
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto full = full_path(a);
  return !full.empty() && full == full_path(b);
}

}  // namespace

ReportFiles::ReportFiles(const ReportPaths& paths, const std::vector<std::filesystem::path>& inputs) {
  const auto add = [&](const std::filesystem::path& path, std::string (*render)(const Report&)) {
    if (path.empty()) return;
    const File added{path, render, check_writable(path)};
    const bool is_output = added.destination == Destination::standard_output;
    const auto is_same = [&](const File& other) {
      if (other.destination != added.destination) return false;
      // A pipe's name may be none that can be followed.
      if (added.destination != Destination::file) return is_output || other.path == path;
      return is_same_file(other.path, path);
    };
    if (std::ranges::any_of(files_, is_same))
      throw InputError(fmt::format("two reports are to go to {}; want a file each", path.string()));
    const auto is_input = [&](const std::filesystem::path& input) {
      return !input.empty() && is_same_file(input, path);
    };
    if (added.destination == Destination::file && std::ranges::any_of(inputs, is_input))
      throw InputError(
          fmt::format("a report would replace {}, which is read here; want another file", path.string()));
    if (is_output) text_stream_ = stderr;
    files_.push_back(added);
  };
  add(paths.json, to_json);
  add(paths.csv, to_csv);
  add(paths.junit, to_junit);
}

bool ReportFiles::update(const Report& report) {
  if (std::chrono::steady_clock::now() - written_ < std::chrono::seconds(1)) return false;
  for (const File& file : files_) {
    if (file.destination != Destination::file) continue;
    try {
      write_file(file.path, file.render(report));
    } catch (const InputError&) {  // a full disk may have room again by the end
    }
  }
  written_ = std::chrono::steady_clock::now();
  return true;
}

std::vector<std::string> ReportFiles::finish(const Report& report) {
  std::vector<std::string> failures;
  for (const File& file : files_) {
    try {
      write_file(file.path, file.render(report));
    } catch (const InputError& error) {
      failures.emplace_back(error.what());
    }
  }
  return failures;
}

}  // namespace convmish
