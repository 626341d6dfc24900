// From the verdicts of cases to the exit code of the process.
#pragma once

#include <vector>

#include "core/error.hpp"
#include "core/result.hpp"

namespace convmish {

/// The worst of all cases. Throws EnvironmentError where every case was skipped.
ExitCode exit_code_of(const std::vector<CaseResult>& cases);

}  // namespace convmish
