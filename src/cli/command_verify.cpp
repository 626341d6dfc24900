// `convmish-bench verify --tensors DIR`: is an output that something else computed right?
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "cli/case_exit_code.hpp"
#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/open_device.hpp"
#include "cli/tensor_files.hpp"
#include "core/device_text.hpp"
#include "core/shape_text.hpp"
#include "report/environment.hpp"
#include "report/table.hpp"

namespace convmish {
namespace {

/// What the folder is called stands for what computed y.
std::string name_of(const std::filesystem::path& folder) {
  const auto path = std::filesystem::canonical(folder);
  return (path.has_filename() ? path.filename() : path).string();  // the root has no name but its path
}

/// The command that judges the tensors again: where its reports went is no part of it.
std::string repeat_command(const TensorOptions& tensors, const DeviceInfo& device) {
  const std::string folder = tensors.folder.string(), math(to_string(tensors.math)),
                    layout(to_string(tensors.y_layout)), on = to_string(device);
  std::vector words{"convmish-bench", "verify", "--tensors", folder.c_str(), "--device", on.c_str()};
  const TensorOptions defaults;
  if (tensors.math != defaults.math) words.insert(words.end(), {"--math-class", math.c_str()});
  if (tensors.y_layout != defaults.y_layout) words.insert(words.end(), {"--layout", layout.c_str()});
  return command_line(words);
}

FillResult verify_on(Device& device, const GivenTensors& tensors, MathClass math) {
  try {
    return verify_tensors(device, tensors, math);
  } catch (const OutOfMemory& error) {
    throw EnvironmentError(error.what());
  }
}

}  // namespace

ExitCode command_verify(const CommandLine& line, const DeviceFactories& devices) {
  if (line.tensors.folder.empty()) throw InputError("verify wants --tensors DIR");
  const auto& folder = line.tensors.folder;
  ReportFiles files(line.report, {folder / "x.npy", folder / "filter.npy", folder / "weight.npy",
                                  folder / "bias.npy", folder / "y.npy"});
  std::FILE* const out = files.text_stream();
  const GivenTensors tensors = read_tensors(line.tensors.folder, line.tensors.y_layout);
  const OpenedDevice opened = open_device(line.device, devices);
  const DeviceInfo& info = opened.device->info();
  fmt::print(out, "device {} ({})\n", info.name, opened.reason);
  std::fflush(out);

  Report report;
  report.environment = host_environment(line.arguments);
  report.environment.device = info;
  opened.device->describe(report.environment);
  report.plan = {.options = {.shapes = {tensors.shape}, .time = false},
                 .device_reason = opened.reason,
                 .shape_reason = "of the tensors"};

  const FillResult check = verify_on(*opened.device, tensors, line.tensors.math);
  CaseResult& result = report.cases.emplace_back();
  result.variant = name_of(line.tensors.folder);
  result.math_class = line.tensors.math;
  result.layout = line.tensors.y_layout;
  result.device = info.kind;
  result.shape = tensors.shape;
  result.verdict = check.verdict;
  result.reason = check.reason;
  result.detail = check.detail;
  result.checks = {check};
  result.repeat = repeat_command(line.tensors, info);

  const TerminalStyle style = terminal_style(::fileno(out));
  fmt::print(out, "\n{}\n{}\n", shape_table(report.cases, info, "", style),
             summary_line(report.cases, style));
  return finish_reports(files, report, exit_code_of(report.cases));
}

}  // namespace convmish
