// Writes every sample report, and a few that the schema must refuse, for check-jsonschema and xmllint; and
// with
// --table WIDTH their tables to the terminal, to be looked at.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/files.hpp"
#include "report/json.hpp"
#include "report/junit.hpp"
#include "report/table.hpp"
#include "sample_reports.hpp"

using namespace convmish;

namespace {

void write_invalid(const std::filesystem::path& folder) {
  const auto valid = nlohmann::json::parse(to_json(testing::small_report()));
  const auto write = [&](const char* name, const char* pointer, nlohmann::json value) {
    nlohmann::json report = valid;
    report[nlohmann::json::json_pointer(pointer)] = std::move(value);
    write_file(folder / name, report.dump());
  };
  write("unknown_key.json", "/cases/0/worst_ratio", 0.5);
  write("zero_for_null.json", "/cases/0/launch/registers", 0);
  write("failed_without_reason.json", "/cases/0/reason", nullptr);
  write("unknown_word.json", "/cases/0/verdict", "pased");
  write_file(folder / "no_counts.xml", "<testsuites><testsuite name='n1c1h3w3k1'/></testsuites>");
  write("key_missing.json", "/plan/timing",
        {{"min_time_s", 1}, {"max_time_s", 2}, {"ci_half_width", 0.1}, {"samples", nullptr}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--table") {
    const TerminalStyle style{.width = std::atoi(argv[2])};
    for (const auto& [name, report] : testing::sample_reports())
      std::printf("%s\n%s\n%s\n\n",
                  shape_table(report.cases, report.environment.device, report.plan.baseline, style).c_str(),
                  table_legend(report.cases, style).c_str(), summary_line(report.cases, style).c_str());
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER | --table WIDTH\n", argv[0]);
    return 3;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder / "invalid");
  for (const auto& [name, report] : testing::sample_reports()) {
    write_file(folder / (name + ".json"), to_json(report));
    write_file(folder / (name + ".xml"), to_junit(report));
  }
  write_invalid(folder / "invalid");
}
