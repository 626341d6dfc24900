// Why did a check fail? Looked into only once it has, so that right results pay nothing.
//
// Where: counts of the wrong outputs by each coordinate. Which: a sample of the outputs against what known
// mistakes would have given (run/mistakes.hpp), recomputed on the host from the operands themselves.
#pragma once

#include <cstdint>
#include <string>

#include "core/device.hpp"
#include "core/result.hpp"
#include "run/mistakes.hpp"

namespace convmish {

struct FailedCheck {
  const Comparison& comparison;  // with at least one wrong output
  const ErrorSummary& error;     // what it gave
  const OperandSource& operands;
  std::uint32_t poison = 0;  // what the output was filled with before the launch
};

Forensics investigate(Device& device, const FailedCheck& failed);

/// One line: "poison left in 0.39 % of the outputs, all in column q-1".
std::string describe(const Forensics& forensics, const Shape& shape);

}  // namespace convmish
