// What vendors say that their devices reach.
#pragma once

#include <string_view>

#include "core/ceiling.hpp"

namespace convmish {

/// The data sheet's rates of the device that the driver calls `device_name`: DRAM, FFMA, and dense tensor
/// rates with fp32 accumulation. All absent for a name that is not in the table: a part of another form
/// factor, memory or partition (MIG) reaches other rates, so that only whole names match.
Ceilings data_sheet_of(std::string_view device_name);

}  // namespace convmish
