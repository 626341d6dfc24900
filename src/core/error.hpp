// The exceptions of the tool, one per thing that the caller can do about it. Each message is one line
// that says what is wrong, where, and what would be right.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace convmish {

/// The process's exit codes. When several apply, the most severe wins (see worse()).
enum class ExitCode : int {
  ok = 0,
  wrong = 1,        // a case failed or is mistrusted
  slower = 2,       // than the baseline report allows, or no longer right
  usage = 3,        // command line, config file or output path
  environment = 4,  // no usable device, the machine misbehaves, or nothing could run
  crashed = 5,      // a variant crashed or timed out
};
constexpr ExitCode worse(ExitCode a, ExitCode b) {
  return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

/// The user asked for something that cannot be: exit 3.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The machine cannot do what was asked: no GPU, a driver too old, a library missing: exit 4.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call into a device's runtime or library failed while a variant ran. After a sticky CUDA error the
/// process cannot use the device again.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A variant cannot take this case here; it becomes `skipped` with this reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Device memory does not suffice; the case becomes `skipped` with both figures.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(std::int64_t needed_bytes, std::int64_t free_bytes)
      : std::runtime_error("needs " + std::to_string(needed_bytes) + " bytes of device memory, " +
                           std::to_string(free_bytes) + " are free"),
        needed(needed_bytes),
        available(free_bytes) {}
  std::int64_t needed, available;
};

}  // namespace convmish
