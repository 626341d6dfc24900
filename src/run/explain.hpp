// Finds out what a variant takes of a device, without timing it.
#pragma once

#include <string>

#include "core/device.hpp"
#include "core/resource_card.hpp"
#include "run/configuration.hpp"

namespace convmish {

/// The device that is open, why it is that one, and what it can reach.
struct ExplainedDevice {
  Device& device;
  std::string reason;
  Ceilings ceilings;
};

/// The same kernel for a device that can record it.
struct RecordableVariant {
  const Variant* variant;  // null: there is none
  Device& device;
};

/// `variant` may be for another device than `here`: what only that could tell is then not known. Shared
/// memory is recorded on a single image of the shape, of which one block runs. Throws DeviceError, and what
/// the variant throws except Unsupported and OutOfMemory.
ResourceCard explain(const Variant& variant, const Shape& shape, const ExplainedDevice& here,
                     const RecordableVariant& recordable, const ConfigurationOptions& configurations = {});

}  // namespace convmish
