// `convmish-bench selftest`: is the validator itself to be trusted? Every mutant must be caught, and every
// honest variant must pass, by the same checks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/open_device.hpp"
#include "cli/selftest_verdict.hpp"
#include "core/device_text.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "report/environment.hpp"
#include "report/report_files.hpp"
#include "run/verify.hpp"
#include "worker/worker.hpp"

namespace convmish {
namespace {

// Every mistake can show: several images and output channels, c no multiple of a channel block, q odd, h and
// w different. Small, because emulated kernels take their time.
constexpr Shape kShape{.n = 2, .c = 12, .h = 13, .w = 17, .k = 5};
constexpr int kSamples = 8;  // a cheat that is found by its timed launches shows within a few
/// A step of a mutant that does not hang takes milliseconds. Honest variants get the time that a run gives
/// them: a library may search for its plan.
constexpr std::chrono::seconds kMutantLimit{5};

RunnerOptions selftest_options(const RunOptions& asked) {
  RunnerOptions options;
  options.run.shapes = {kShape};
  options.run.fills = default_fills();
  options.run.fills.insert(options.run.fills.end(), {Fill::tails, Fill::delta});
  options.run.seed = asked.seed;
  options.run.timing.samples = kSamples;
  options.run.timeout_s = asked.timeout_s;
  return options;
}

std::string label(const CaseResult& result) {
  return fmt::format("{}:{}", result.variant, to_string(result.math_class));
}

/// A detail's head: the whole of it is in the JSON report.
std::string shortened(const std::string& detail) {
  constexpr std::size_t kMost = 90;
  return detail.size() <= kMost ? detail : detail.substr(0, kMost - 3) + "...";
}

using Row = std::array<std::string, 5>;

Row to_row(const CaseResult& result) {
  const Finding finding = first_finding(result);
  return {label(result), std::string(to_string(result.verdict)), result.reason, finding.where,
          shortened(finding.detail)};
}

/// Rows as they come: a hang is then seen where it happens.
void print_row(std::FILE* out, const Row& row) {
  std::string line = fmt::format("{:<30}  {:<9}  {:<21}  {:<11}  {}", row[0], row[1], row[2], row[3], row[4]);
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(out, "{}\n", line);
  std::fflush(out);
}

}  // namespace

ExitCode command_selftest(const CommandLine& line, const DeviceFactories& devices, const Registry& registry) {
  ReportFiles files(line.report, {});
  std::FILE* const out = files.text_stream();
  const auto start = std::chrono::steady_clock::now();
  RunnerOptions options = selftest_options(line.run);
  Report report;
  report.environment = host_environment(line.arguments);
  const auto open = device_opener(line, devices, report.environment);
  std::optional<Supervisor> supervisor(std::in_place, open, options, kMutantLimit);
  const DeviceReport opened = supervisor->device();
  const DeviceInfo device = opened.environment.device;
  const auto mutants = variants_of_group(registry, device.kind, Group::mutant);
  const auto honest = variants_of_group(registry, device.kind, Group::standard);
  if (mutants.empty() || honest.empty())
    throw EnvironmentError(fmt::format("this build has no {} for {}",
                                       mutants.empty() ? "mutants" : "variants", to_string(device.kind)));

  add_device(report.environment, opened.environment);
  report.ceilings = options.ceilings = opened.ceilings;  // the next worker need not measure anew
  report.plan = {options.run, opened.reason, "fixed: ragged in every dimension", ""};
  fmt::print(out, "device {} ({})\nshape  {}\n", device.name, opened.reason, to_string(kShape));

  // Alone, so that none can help or hurt another.
  const auto run_alone = [&](const Variant& variant) {
    CaseResult result = supervisor->run(kShape, {&variant}, {}).front();
    result.repeat =
        fmt::format("convmish-bench selftest --device {} --seed {}", to_string(device), options.run.seed);
    print_row(out, to_row(result));
    report.cases.push_back(result);
    return result;
  };
  std::vector<std::string> survivors, rejected;
  fmt::print(out, "\nMutants: each must be caught\n");
  print_row(out, {"mutant", "verdict", "first caught by rule", "on", "detail"});
  for (const Variant* mutant : mutants)
    if (const CaseResult result = run_alone(*mutant); !is_caught(result)) survivors.push_back(label(result));
  supervisor.emplace(open, options, std::chrono::seconds(options.run.timeout_s));
  fmt::print(out, "\nHonest variants: each must pass\n");
  print_row(out, {"variant", "verdict", "reason", "on", "detail"});
  for (const Variant* variant : honest)
    if (const CaseResult result = run_alone(*variant); is_rejected(result)) rejected.push_back(label(result));

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(out, "\n{} of {} mutants caught, {} of {} honest variants not rejected, {:.1f} s\n",
             mutants.size() - survivors.size(), mutants.size(), honest.size() - rejected.size(),
             honest.size(), seconds);
  if (!survivors.empty()) fmt::print(out, "survived: {}\n", fmt::join(survivors, ", "));
  if (!rejected.empty()) fmt::print(out, "rejected: {}\n", fmt::join(rejected, ", "));
  return finish_reports(files, report,
                        survivors.empty() && rejected.empty() ? ExitCode::ok : ExitCode::wrong);
}

}  // namespace convmish
