#include "cli/open_device.hpp"

#include "worker/ceilings_cache.hpp"

namespace convmish {
namespace {

std::unique_ptr<Device> open_cuda(int index, const DeviceFactories& devices) {
  if (!devices.cuda)
    throw EnvironmentError("this build has no CUDA; configure with a CUDA compiler on the PATH");
  return devices.cuda(index);
}

}  // namespace

OpenedDevice open_device(const DeviceChoice& choice, const DeviceFactories& devices) {
  switch (choice.kind) {
    case DeviceChoice::Kind::cpu:
      return {devices.cpu(), "asked for"};
    case DeviceChoice::Kind::cuda:
      return {open_cuda(choice.index, devices), "asked for"};
    case DeviceChoice::Kind::automatic:
      break;
  }
  try {
    return {open_cuda(choice.index, devices), "auto: the first CUDA GPU"};
  } catch (const EnvironmentError& error) {
    return {devices.cpu(), std::string("auto: ") + error.what()};
  }
}

std::function<OpenedDevice()> device_opener(const CommandLine& line, const DeviceFactories& devices,
                                            const Environment& tool) {
  return [&line, &devices, tool] {
    OpenedDevice opened = open_device(line.device, devices);
    opened.ceilings = [tool, cache = CeilingsCache{user_cache_folder(), line.kept_ceilings}](Device& device) {
      return look_up_ceilings(device, tool, cache);
    };
    return opened;
  };
}

}  // namespace convmish
