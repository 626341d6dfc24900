// `convmish-bench verify --tensors DIR`: is an output that something else computed right?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
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
#include "run/case_verdict.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;

/// What the folder is called stands for what computed y: the end of its path, so much of it as no other has.
std::string name_of(const fs::path& folder, const std::vector<fs::path>& folders) {
  const auto steps_from_end = [](const fs::path& path) {
    const fs::path full = fs::canonical(path);
    std::vector<fs::path> steps(full.begin(), full.end());  // the root is the first, and stands nowhere else
    std::ranges::reverse(steps);
    return steps;
  };
  const auto steps = steps_from_end(folder);
  std::ptrdiff_t needed = 1;
  for (const fs::path& other : folders)
    if (const auto its = steps_from_end(other); its != steps)
      needed = std::max(needed, 1 + (std::ranges::mismatch(steps, its).in1 - steps.begin()));
  fs::path name;
  for (auto step = steps.begin() + needed; step != steps.begin();) name /= *--step;
  return name.string();
}

/// A report has each case once.
void refuse_repeats(const std::vector<fs::path>& folders) {
  for (auto folder = folders.begin(); folder != folders.end(); ++folder)
    for (auto earlier = folders.begin(); earlier != folder; ++earlier)
      if (fs::equivalent(*earlier, *folder))
        throw InputError(fmt::format("--tensors: {} and {} are the same folder; want each once",
                                     earlier->string(), folder->string()));
}

/// The command that judges the tensors again: where its reports went is no part of it.
std::string repeat_command(const CommandLine& line, const fs::path& folder, const DeviceInfo& device) {
  const TensorOptions& tensors = line.tensors;
  std::vector<std::string> words{"convmish-bench", "verify",   "--tensors",
                                 folder.string(),  "--device", to_string(device)};
  const auto add = [&words](const char* option, std::string_view value) {
    words.insert(words.end(), {fmt::format("--{}", option), std::string(value)});
  };
  const TensorOptions defaults;
  if (tensors.math != defaults.math) add("math-class", to_string(tensors.math));
  if (tensors.y_layout != defaults.y_layout) add("layout", to_string(tensors.y_layout));
  if (!line.run.fills.empty()) {
    std::vector<std::string_view> fills;
    for (const Fill fill : line.run.fills) fills.push_back(to_string(fill));
    add("shape", to_string(line.run.shapes.front()));
    add("fill", fmt::format("{}", fmt::join(fills, ",")));
    add("seed", std::to_string(line.run.seed));
    if (tensors.algorithm != defaults.algorithm) add("algorithm", to_string(tensors.algorithm));
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return command_line(arguments);
}

CaseResult new_case(const CommandLine& line, const fs::path& folder, const Shape& shape,
                    const DeviceInfo& device) {
  return {.variant = name_of(folder, line.tensors.folders),
          .math_class = line.tensors.math,
          .layout = line.tensors.y_layout,
          .device = device.kind,
          .shape = shape,
          .seed = line.run.seed,
          .fills = line.run.fills,
          .algorithm = line.tensors.algorithm,
          .repeat = repeat_command(line, folder, device)};
}

/// All tensors are the folder's.
CaseResult verify_folder(Device& device, const CommandLine& line, const fs::path& folder) {
  const GivenTensors tensors = read_tensors(folder, line.tensors.y_layout);
  const FillResult check = verify_tensors(device, tensors, line.tensors.math);
  CaseResult result = new_case(line, folder, tensors.shape, device.info());
  set_verdict(result, check.verdict, check.reason, check.detail);
  result.checks = {check};
  return result;
}

/// The folder has an output for each fill, of the operands that `draw` writes.
CaseResult verify_outputs(Device& device, const CommandLine& line, const fs::path& folder) {
  const Shape& shape = line.run.shapes.front();
  CaseResult result = new_case(line, folder, shape, device.info());
  for (const Fill fill : line.run.fills) {
    Shape checked = shape;
    checked.n = check_batch(shape, fill == line.run.fills.front());
    const auto y = read_output(folder / to_string(fill), checked, line.tensors.y_layout);
    adopt(result, verify_output(device, fill_spec(fill, line.run.seed, checked), y,
                                {line.tensors.math, line.tensors.y_layout, line.tensors.algorithm}));
  }
  settle(result);
  return result;
}

std::vector<fs::path> files_read(const CommandLine& line) {
  std::vector<fs::path> files;
  for (const fs::path& folder : line.tensors.folders) {
    for (const char* const name : {"x.npy", "filter.npy", "weight.npy", "bias.npy", "y.npy"})
      files.push_back(folder / name);
    for (const Fill fill : line.run.fills) files.push_back(folder / to_string(fill) / "y.npy");
  }
  return files;
}

}  // namespace

ExitCode command_verify(const CommandLine& line, const DeviceFactories& devices) {
  if (line.tensors.folders.empty()) throw InputError("verify wants --tensors DIR");
  const bool drawn = !line.run.fills.empty();
  if (drawn && line.run.shapes.size() != 1) throw InputError("verify wants one --shape");
  for (const fs::path& folder : line.tensors.folders)
    if (!fs::is_directory(folder))
      throw InputError(
          fmt::format("{}: is no folder; want one that holds {}", folder.string(),
                      drawn ? "FILL/y.npy for each fill" : "x.npy, filter.npy, bias.npy and y.npy"));
  refuse_repeats(line.tensors.folders);
  ReportFiles files(line.report, files_read(line));
  std::FILE* const out = files.text_stream();

  Report report;
  report.environment = host_environment(line.arguments);
  const OpenedDevice opened = open_device(line.device, devices);
  Device& device = *opened.device;
  const DeviceInfo& info = device.info();
  report.environment.device = info;
  device.describe(report.environment);
  try {
    for (const fs::path& folder : line.tensors.folders)
      report.cases.push_back(drawn ? verify_outputs(device, line, folder)
                                   : verify_folder(device, line, folder));
  } catch (const OutOfMemory& error) {
    throw EnvironmentError(error.what());
  }
  report.plan = {.options = {.shapes = {}, .fills = line.run.fills, .seed = line.run.seed, .time = false},
                 .device_reason = opened.reason,
                 .shape_reason = drawn ? "asked for" : "of the tensors"};
  for (const CaseResult& result : report.cases) report.plan.options.shapes.push_back(result.shape);
  drop_repeats(report.plan.options);

  fmt::print(out, "device {} ({})\n", info.name, opened.reason);
  const TerminalStyle style = terminal_style(::fileno(out));
  for (const Shape& shape : report.plan.options.shapes) {
    std::vector<CaseResult> cases;
    std::ranges::copy_if(report.cases, std::back_inserter(cases),
                         [&](const CaseResult& result) { return result.shape == shape; });
    fmt::print(out, "\n{}\n", shape_table(cases, info, "", style));
  }
  fmt::print(out, "{}\n", summary_line(report.cases, style));
  return finish_reports(files, report, exit_code_of(report.cases));
}

}  // namespace convmish
