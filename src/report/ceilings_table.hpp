// What a device can reach, as text for people.
#pragma once

#include <string>

#include "core/ceiling.hpp"
#include "report/terminal.hpp"

namespace convmish {

/// A row for each ceiling that is known, as measured and by the data sheet; then when it was measured, and
/// why a rate was not. Empty where nothing is known.
std::string ceilings_table(const DeviceCeilings& ceilings, const TerminalStyle& style);

}  // namespace convmish
