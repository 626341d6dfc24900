// Did the device hold its clocks while a case was timed?
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace convmish {

/// Adds a reading that was taken before the sample of index `next_sample`, if anything has changed.
void add_reading(ClockTrace& trace, std::int64_t next_sample, const ClockState& state);

/// Least and largest of the readings; nothing where there are none.
template <class T>
std::optional<std::array<T, 2>> range_of(const std::vector<std::optional<T>>& readings) {
  std::optional<std::array<T, 2>> range;
  for (const auto& reading : readings) {
    if (!reading) continue;
    if (!range) range = {*reading, *reading};
    (*range)[0] = std::min((*range)[0], *reading);
    (*range)[1] = std::max((*range)[1], *reading);
  }
  return range;
}

/// Every limit that was in force at some reading, in the order of their words.
std::vector<ClockLimit> limits_of(const ClockTrace& trace);

/// What makes a time measured under these clocks uncertain; empty where nothing does: an SM clock that moved
/// by more than 5 %, or one that was held down for heat, or by the board's or the rack's power supply.
///
/// The software power cap is no such reason: a large GPU at full work is at its cap all the time, steadily,
/// and a kernel that makes it so is not measured wrongly. Where the cap moves the clock, the clock tells.
/// Nor are clocks that someone has set.
std::string noise_of(const ClockTrace& trace);

}  // namespace convmish
