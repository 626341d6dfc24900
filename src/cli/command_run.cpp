// `convmish-bench [run]`: check and time the chosen variants on the chosen shapes, then report.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/baseline_gate.hpp"
#include "cli/case_exit_code.hpp"
#include "cli/commands.hpp"
#include "cli/configurations.hpp"
#include "cli/failure.hpp"
#include "cli/open_device.hpp"
#include "cli/progress.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "report/ceilings_table.hpp"
#include "report/environment.hpp"
#include "report/report_files.hpp"
#include "report/table.hpp"
#include "run/verify.hpp"
#include "worker/worker.hpp"

namespace convmish {
namespace {

// Large enough for several tiles each way, small enough for emulated kernels to take a moment only.
constexpr Shape kCpuShape{.n = 1, .c = 16, .h = 34, .w = 34, .k = 32};

struct DefaultShape {
  Shape shape;
  std::string reason;
};

/// Where no shape is asked for: the headline shape on a GPU, with fewer images where memory is short.
DefaultShape default_shape(const DeviceReport& device) {
  if (device.environment.device.kind == DeviceKind::cpu)
    return {kCpuShape, "default: small, since the CPU device emulates GPU kernels"};
  Shape shape = kHeadlineShape;
  // Two input sets, the output, and as much again for the workspace of a convolution that is not fused.
  const auto needed = [&shape] { return 2 * 4 * (shape.x_elements() + shape.y_elements()); };
  while (shape.n > 1 && needed() > device.free_bytes) shape.n /= 2;
  if (shape == kHeadlineShape) return {shape, "default: the headline shape"};
  return {shape, fmt::format("default: the headline shape with {} images for {}, as {:.1f} GB are free",
                             shape.n, kHeadlineShape.n, static_cast<double>(device.free_bytes) / 1e9)};
}

constexpr const char* kThisRun = "this run";  // as a report's name

/// Whether the run will have a case that the baseline has.
bool any_in(const BaselineGate& gate, const std::vector<const Variant*>& variants, const RunOptions& run,
            const DeviceInfo& device) {
  return std::ranges::any_of(run.shapes, [&](const Shape& shape) {
    return std::ranges::any_of(
        variants, [&](const Variant* variant) { return gate.has(new_case(*variant, shape, run, device)); });
  });
}

/// The report of a run that goes on, and its files, which are at most a second or so behind.
class GrowingReport {
 public:
  GrowingReport(ReportFiles& files, Report& report) : files_(files), report_(report) {}

  /// The results of the shape under way as they stand, in place of what was known of them.
  void adopt(const std::vector<CaseResult>& results) {
    report_.cases.resize(finished_);
    report_.cases.insert(report_.cases.end(), results.begin(), results.end());
    is_written_ = false;
  }
  void end_shape() { finished_ = report_.cases.size(); }
  /// Writes what is not written yet, unless that would be too often: then the next call does.
  void catch_up() {
    if (!is_written_) is_written_ = files_.update(report_);
  }

 private:
  ReportFiles& files_;
  Report& report_;
  std::size_t finished_ = 0;  // cases of the shapes before the one under way
  bool is_written_ = false;
};

}  // namespace

ExitCode command_run(const CommandLine& line, const DeviceFactories& devices, const Registry& registry) {
  ReportFiles files(line.report, {line.config, line.baseline, line.tuning.table, line.tuning.out});
  std::FILE* const out = files.text_stream();
  std::optional<BaselineGate> gate;
  if (!line.baseline.empty()) gate.emplace(line.baseline, line.gate);
  TuningOutput tuned(line.tuning.out);
  RunnerOptions options{.run = line.run,
                        .baseline = std::string(kDefaultBaseline),
                        .configurations = configuration_options(line.tuning)};
  if (options.run.fills.empty()) options.run.fills = default_fills();
  Report report;
  report.environment = host_environment(line.arguments);

  Supervisor supervisor(device_opener(line, devices, report.environment), options,
                        std::chrono::seconds(options.run.timeout_s));
  const DeviceInfo device = supervisor.device().environment.device;
  add_device(report.environment, supervisor.device().environment);
  if (gate) gate->refuse_other_device(kThisRun, device);
  report.ceilings = supervisor.device().ceilings;
  const auto variants = select_variants(registry, device.kind, options.run.variants);
  check_configurations(options.configurations, device, variants, registry);
  tuned.check(device, registry);
  std::string shape_reason = "asked for";
  if (options.run.shapes.empty()) {
    const DefaultShape chosen = default_shape(supervisor.device());
    options.run.shapes = {chosen.shape};
    shape_reason = chosen.reason;
  }
  if (gate) gate->refuse_disjoint(kThisRun, any_in(*gate, variants, options.run, device));
  report.plan = {options.run, supervisor.device().reason, shape_reason, options.baseline};

  const TerminalStyle style = terminal_style(::fileno(out));
  fmt::print(out, "device {} ({})\nshape  {} ({})\n", device.name, supervisor.device().reason,
             options.run.shapes.size() == 1 ? to_string(options.run.shapes.front())
                                            : fmt::format("{} shapes", options.run.shapes.size()),
             shape_reason);
  if (report.ceilings)
    if (const std::string table = ceilings_table(*report.ceilings, style); !table.empty())
      fmt::print(out, "\n{}", table);

  GrowingReport growing(files, report);
  growing.catch_up();  // from here on a killed run leaves a report of what was done
  ProgressLine progress(options.run, variants);
  const RunObserver observer{.step =
                                 [&](const Variant& variant, const Step& step) {
                                   progress.show(variant, step);
                                   growing.catch_up();
                                 },
                             .so_far =
                                 [&](const std::vector<CaseResult>& results) {
                                   growing.adopt(results);
                                   growing.catch_up();
                                 }};
  try {
    for (const Shape& shape : options.run.shapes) {
      progress.begin_shape();
      const auto results = supervisor.run(shape, variants, observer);
      progress.end_shape();
      growing.adopt(results);
      growing.end_shape();
      tuned.keep(device, variants, results);
      fmt::print(out, "\n{}", shape_table(results, device, options.baseline, style));
      std::fflush(out);
      growing.catch_up();
    }
  } catch (...) {  // the device is gone, say: what was found before is not
    finish_reports(files, report, ExitCode::ok);
    throw;
  }

  if (const std::string legend = table_legend(report.cases, style); !legend.empty())
    fmt::print(out, "\n{}", legend);
  fmt::print(out, "\n{}\n", summary_line(report.cases, style));
  ExitCode code = ExitCode::ok;
  if (gate) {
    fmt::print(out, "\n");
    code = gate->judge({kThisRun, &report}, out);
  }
  code = finish_reports(files, report, code);
  tuned.finish();
  return worse(code, exit_code_of(report.cases));
}

}  // namespace convmish
