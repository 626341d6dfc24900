// All variants of one shape: each checked, then all that passed timed together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/plan.hpp"
#include "core/registry.hpp"
#include "core/result.hpp"
#include "run/configuration.hpp"
#include "run/step.hpp"

namespace convmish {

struct RunnerOptions {
  RunOptions run;                            // with at least one fill
  std::string baseline;                      // name of the variant that `speedup` is told against
  std::optional<DeviceCeilings> ceilings{};  // of the device; absent: no floor is told
  ConfigurationOptions configurations{};
};

/// Who wants to know of a run while it goes on; either may be left out.
struct RunObserver {
  /// Before each step that may take long or fail.
  std::function<void(const Variant&, const Step&)> step{};
  /// The shape's results as they stand after each check of all variants. A case that still waits for its time
  /// or another check, and has not failed, is `skipped` as `interrupted`: it cannot be called passed.
  std::function<void(const std::vector<CaseResult>&)> so_far{};
};

/// One result a variant, in the order of `variants`. A variant that cannot take the shape is `skipped`; one
/// whose code throws is `crashed` and the others go on, unless the device itself is lost, which is thrown
/// as DeviceError.
std::vector<CaseResult> run_shape(Device& device, const std::vector<const Variant*>& variants,
                                  const Shape& shape, const RunnerOptions& options,
                                  const RunObserver& observer = {});

/// A case of which nothing is known yet.
CaseResult new_case(const Variant& variant, const Shape& shape, const RunOptions& run,
                    const DeviceInfo& device);

/// The command line that repeats one case, with every option that is not the default.
std::string repeat_command(const CaseResult& result, const RunOptions& options, const DeviceInfo& device);

}  // namespace convmish
