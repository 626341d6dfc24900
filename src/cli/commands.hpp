// The verbs, one command_<verb>.cpp each. Output goes to stdout; what cannot be done is thrown.
#pragma once

#include <functional>
#include <memory>

#include "cli/options.hpp"
#include "core/device.hpp"
#include "core/error.hpp"

namespace convmish {

/// How a command opens a device, so that no command depends on CUDA being part of the build.
struct DeviceFactories {
  std::function<std::unique_ptr<Device>()> cpu;
  /// Throws EnvironmentError that says why there is no such GPU. Empty in a build without CUDA.
  std::function<std::unique_ptr<Device>(int index)> cuda;
};

ExitCode command_run(const CommandLine& line, const DeviceFactories& devices);

/// Every variant of every device, and why one is unavailable on this machine.
ExitCode command_list(const DeviceFactories& devices);

}  // namespace convmish
