// From the user's choice to an open device, with the reason for it.
#pragma once

#include <memory>
#include <string>

#include "cli/commands.hpp"

namespace convmish {

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string reason;  // "asked for", "auto: no CUDA GPU: ..."
};

/// Throws EnvironmentError where the device asked for cannot be had. `auto` never throws for want of a GPU.
OpenedDevice open_device(const DeviceChoice& choice, const DeviceFactories& devices);

}  // namespace convmish
