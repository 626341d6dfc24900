// What looser rules than the tool's own say of an output: told beside the verdict, never instead of it.
#pragma once

#include <vector>

#include "core/plan.hpp"
#include "core/result.hpp"
#include "run/prepared.hpp"

namespace convmish {

/// Judges the output as it stands by an `allclose` tolerance.
ToleranceResult apply_allclose(Device& device, const PreparedVariant& prepared, Inputs& inputs,
                               SharedOutput& output, const Tolerance& tolerance);

/// KernelBench's rule: five inputs of its fill, beginning with `inputs`, whose x is redrawn; every output
/// within 1e-4 absolutely and 1e-4 relatively. Against float64, and against what a framework gives that
/// rounds multiplicands to TF32: by the second a right fp32 result can fail.
std::vector<ToleranceResult> apply_kernelbench(Device& device, PreparedVariant& prepared, Inputs& inputs,
                                               SharedOutput& output);

}  // namespace convmish
