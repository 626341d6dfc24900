#include "cli/baseline_gate.hpp"

#include <fmt/format.h>

#include "report/comparison_table.hpp"
#include "report/json.hpp"
#include "report/terminal.hpp"

namespace convmish {

BaselineGate::BaselineGate(const std::filesystem::path& file, const GateOptions& options)
    : name_(file.string()), options_(options), before_(read_report(file)), cases_({name_, &before_}) {}

void BaselineGate::refuse_other_device(const std::string& report_name, const DeviceInfo& device) const {
  const std::string& old_device = before_.environment.device.name;
  if (options_.force || device.name == old_device) return;
  throw InputError(
      fmt::format("{} is of \"{}\", {} of \"{}\": their times say nothing of each other; --force compares "
                  "them all the same",
                  name_, old_device, report_name, device.name));
}

void BaselineGate::refuse_disjoint(const std::string& report_name, bool any_common) const {
  if (options_.force || any_common) return;
  throw InputError(fmt::format(
      "{} and {} have no case in common, by variant, class, layout, device and shape; --force compares them "
      "all the same",
      name_, report_name));
}

ExitCode BaselineGate::judge(const NamedReport& report, std::FILE* out) const {
  const ReportComparison comparison = compare_reports({name_, &before_}, report, options_.max_slowdown);
  const TerminalStyle style = terminal_style(::fileno(out));
  fmt::print(out, "{} compared with {}\n\n{}\n{}\n", printable(report.name), printable(name_),
             comparison_table(comparison, options_.max_slowdown, style),
             comparison_summary(comparison, options_.max_slowdown, style));
  return comparison.has_regression() ? ExitCode::slower : ExitCode::ok;
}

}  // namespace convmish
