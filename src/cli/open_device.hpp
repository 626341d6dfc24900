// From the user's choice to an open device, with the reason for it.
#pragma once

#include "cli/commands.hpp"
#include "worker/worker.hpp"

namespace convmish {

/// Throws EnvironmentError where the device asked for cannot be had. `auto` never throws for want of a GPU.
OpenedDevice open_device(const DeviceChoice& choice, const DeviceFactories& devices);

}  // namespace convmish
