// A device as `--device` takes it.
#pragma once

#include <string>

#include "core/variant.hpp"
#include "core/words.hpp"

namespace convmish {

/// "cuda:1", "cpu".
inline std::string to_string(const DeviceInfo& device) {
  std::string text(to_string(device.kind));
  if (device.kind == DeviceKind::cuda) text += ':' + std::to_string(device.index);
  return text;
}

}  // namespace convmish
