// Cases run in a child process, so that a variant which crashes or hangs takes only its own case along.
//
// The child is forked before this process has touched a device: CUDA and oneDNN's threads do not survive a
// fork. It opens the device, says what it found, then serves one shape a request until its end of the
// pipe closes. What it is doing stands in memory shared with the parent, so that telling it costs a launch
// nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/result.hpp"
#include "run/runner.hpp"
#include "run/step.hpp"

namespace convmish {

/// An open device and why it was chosen: "asked for", "auto: no CUDA GPU: ...".
struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string reason;
  /// Finds out what the device can reach; may take a second. Null: nothing is known of it.
  std::function<DeviceCeilings(Device&)> ceilings{};
};

/// What a worker says of the device it opened.
struct DeviceReport {
  Environment environment;
  std::string reason;
  std::int64_t free_bytes = 0;
  std::optional<DeviceCeilings> ceilings;  // absent: not asked for
};

/// The child is gone, or was killed for exceeding its time.
struct WorkerDied : std::runtime_error {
  WorkerDied(Verdict as, std::string machine_reason, const std::string& detail)
      : std::runtime_error(detail), verdict(as), reason(std::move(machine_reason)) {}
  Verdict verdict;     // crashed or timed_out
  std::string reason;  // see run/reasons.hpp
};

class Worker {
 public:
  /// Forks. `open` runs in the child; what it throws is thrown here. The device is asked for its ceilings
  /// where variants will be timed, unless the options tell them.
  Worker(const std::function<OpenedDevice()>& open, const RunnerOptions& options,
         std::chrono::seconds timeout);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const DeviceReport& device() const;

  /// run_shape() in the child, over the variants that the options select on its device. The observer is told
  /// the step under way some times a second, however long it takes. Throws WorkerDied.
  std::vector<CaseResult> run(const Shape& shape, const std::vector<const Variant*>& variants,
                              const RunObserver& observer);

  /// The variant whose code ran last; null where none did.
  const Variant* running() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs shapes through workers: a case that kills its worker becomes `crashed` or `timed_out`, and a new
/// worker goes on with the others.
class Supervisor {
 public:
  Supervisor(std::function<OpenedDevice()> open, RunnerOptions options, std::chrono::seconds timeout);

  const DeviceReport& device() const { return worker_->device(); }

  std::vector<CaseResult> run(const Shape& shape, const std::vector<const Variant*>& variants,
                              const RunObserver& observer);

 private:
  std::function<OpenedDevice()> open_;
  RunnerOptions options_;
  std::chrono::seconds timeout_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace convmish
