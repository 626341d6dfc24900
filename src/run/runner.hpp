// All variants of one shape: each checked, then all that passed timed together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/plan.hpp"
#include "core/registry.hpp"
#include "core/result.hpp"
#include "run/step.hpp"

namespace convmish {

struct RunnerOptions {
  RunOptions run;        // with at least one fill
  std::string baseline;  // name of the variant that `speedup` is told against
};

/// Told before each step that may take long or fail.
using Progress = std::function<void(const Variant&, const Step&)>;

/// One result a variant, in the order of `variants`. A variant that cannot take the shape is `skipped`; one
/// whose code throws is `crashed` and the others go on, unless the device itself is lost, which is thrown
/// as DeviceError.
std::vector<CaseResult> run_shape(Device& device, const std::vector<const Variant*>& variants,
                                  const Shape& shape, const RunnerOptions& options, const Progress& progress);

/// A case of which nothing is known yet.
CaseResult new_case(const Variant& variant, const Shape& shape, const RunOptions& run,
                    const DeviceInfo& device);

/// The command line that repeats one case, with every option that is not the default.
std::string repeat_command(const CaseResult& result, const RunOptions& options, int cuda_index);

}  // namespace convmish
