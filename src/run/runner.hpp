// All variants of one shape: each checked, then all that passed timed together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/plan.hpp"
#include "core/registry.hpp"
#include "core/result.hpp"

namespace convmish {

struct RunnerOptions {
  RunOptions run;
  std::string baseline;  // name of the variant that `speedup` is told against
  /// Told before each step that may take long or fail: "check normal", "time"; and which variant.
  std::function<void(const Variant&, std::string_view step)> progress = [](const Variant&, std::string_view) {
  };
};

/// One result a variant, in the order of `variants`. A variant that cannot take the shape is `skipped`; one
/// whose code throws is `crashed` and the others go on, unless the device itself is lost, which is thrown
/// as DeviceError.
std::vector<CaseResult> run_shape(Device& device, const std::vector<const Variant*>& variants,
                                  const Shape& shape, const RunnerOptions& options);

/// The command line that repeats one case.
std::string repeat_command(const CaseResult& result, const RunOptions& options);

}  // namespace convmish
