// The command line: argv in, one validated CommandLine out.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "report/report_files.hpp"

namespace convmish {

/// What the tool is asked to do: its first word that is no option, or --list, --calibrate, --version, --help.
enum class Verb { run, list, selftest, compare, draw, verify, calibrate, explain, version, help };

/// Which device to run on; `automatic` is the GPU where there is one, else the CPU.
struct DeviceChoice {
  enum class Kind { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  int index = 0;  // CUDA ordinal

  bool operator==(const DeviceChoice&) const = default;
};

/// How a report is held against an earlier one.
struct GateOptions {
  double max_slowdown = 0.03;  // of a case's median, relative
  bool force = false;          // compare what should not be compared
};

/// How the configuration of a variant that has several is chosen.
struct TuningOptions {
  std::string configuration;    // of each variant that has it; empty: of none
  bool tune = false;            // time all of them first
  std::filesystem::path table;  // what was fastest earlier; empty: the table that the tool comes with
  std::filesystem::path out;    // what is fastest now; empty: nowhere
};

/// Tensors to write, or to verify.
struct TensorOptions {
  std::vector<std::filesystem::path> folders;
  MathClass math = MathClass::fp32;  // whose rounding y may show
  Layout y_layout = Layout::nchw;
  Algorithm algorithm = Algorithm::direct;  // that y was computed by
};

struct CommandLine {
  Verb verb = Verb::run;
  std::vector<std::string> operands;  // as many words behind the verb as it takes
  std::filesystem::path config;       // the run's; empty: none
  RunOptions run;                     // the config file's, overridden by the command line's
  DeviceChoice device;
  bool kept_ceilings = true;  // false: measure what the device can reach, whatever an earlier run kept
  ReportPaths report;
  std::filesystem::path baseline;  // the earlier report that a run is held against; empty: none
  GateOptions gate;
  TuningOptions tuning;
  TensorOptions tensors;
  std::span<const char* const> arguments;  // main's argv, for the report; not a copy
};

/// Reads the config file too, if one is named. Options may stand in any order; one that is given twice
/// holds the last value, or all of them where it takes a list. Every mistake is an InputError that names the
/// nearest valid word. With --help and --version nothing else is looked at.
CommandLine parse_command_line(std::span<const char* const> arguments);

/// The text of --help.
std::string help_text();

}  // namespace convmish
