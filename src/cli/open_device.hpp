// From the user's choice to an open device, with the reason for it.
#pragma once

#include <functional>

#include "cli/commands.hpp"
#include "worker/worker.hpp"

namespace convmish {

/// Throws EnvironmentError where the device asked for cannot be had. `auto` never throws for want of a GPU.
OpenedDevice open_device(const DeviceChoice& choice, const DeviceFactories& devices);

/// The same for a Worker, with the way to find out the device's ceilings; `tool` is the environment that the
/// report tells. The line and the factories outlive it.
std::function<OpenedDevice()> device_opener(const CommandLine& line, const DeviceFactories& devices,
                                            const Environment& tool);

}  // namespace convmish
