// The verbs, one command_<verb>.cpp each. Output goes to stdout; what cannot be done is thrown.
#pragma once

#include <functional>
#include <memory>

#include "cli/options.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"

namespace convmish {

/// The shape that variants are compared on, that of configs/headline.json.
inline constexpr Shape kHeadlineShape{.n = 64, .c = 64, .h = 256, .w = 256, .k = 128};

/// How a command opens a device, so that no command depends on CUDA being part of the build.
struct DeviceFactories {
  std::function<std::unique_ptr<Device>()> cpu;
  /// Throws EnvironmentError that says why there is no such GPU. Empty in a build without CUDA.
  std::function<std::unique_ptr<Device>(int index)> cuda;
};

/// Throws what ended the run, after the report of what was found before it.
ExitCode command_run(const CommandLine& line, const DeviceFactories& devices,
                     const Registry& registry = Registry::instance());

/// Runs every mutant and every honest variant of the device. ExitCode::wrong if a mutant survives or an
/// honest variant is rejected.
ExitCode command_selftest(const CommandLine& line, const DeviceFactories& devices,
                          const Registry& registry = Registry::instance());

/// Two reports, case by case. ExitCode::slower on a regression.
ExitCode command_compare(const CommandLine& line);

/// What the device's clock resolves, and what a timing costs.
ExitCode command_calibrate(const CommandLine& line, const DeviceFactories& devices);

/// A resource card of one variant for each shape. Throws InputError where the name is none's, or several's.
ExitCode command_explain(const CommandLine& line, const DeviceFactories& devices);

/// Writes the operands of each fill of a check, for something else to compute with.
ExitCode command_draw(const CommandLine& line, const DeviceFactories& devices);

/// Outputs that something else computed. ExitCode::wrong if it is.
ExitCode command_verify(const CommandLine& line, const DeviceFactories& devices);

/// Every variant of every device, and why one is unavailable on this machine.
ExitCode command_list(const DeviceFactories& devices);

}  // namespace convmish
