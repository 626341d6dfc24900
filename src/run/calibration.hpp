// What does a device's clock resolve, and what does a timing cost that times nothing?
#pragma once

#include <cstdint>
#include <optional>

#include "core/device.hpp"
#include "core/result.hpp"

namespace convmish {

struct Calibration {
  /// The least step between two timings of the empty launch; absent where all of them are equal.
  std::optional<double> resolution_ms;
  /// A kernel that does nothing: less than this no launch is seen to take.
  TimeSummary empty_launch_ms;
  /// What the host took to enqueue each of them, in microseconds; absent where the host does the work itself.
  std::optional<TimeSummary> enqueue_us;
  /// Of those, how many took it longer than the device is kept busy before a timed launch: their times may
  /// hold a wait for the host. A run makes such launches again with a longer lead (run/timing.cpp).
  std::int64_t behind_the_lead = 0;

  std::int64_t copy_bytes = 0;  // read, and written
  TimeSummary copy_ms;
};

/// Takes about a second. Throws OutOfMemory, DeviceError.
Calibration calibrate(Device& device);

}  // namespace convmish
