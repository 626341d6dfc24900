#include "core/clocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace convmish {
namespace {

constexpr double kSteady = 1.05;  // largest over least SM clock
constexpr std::array kThrottling{ClockLimit::hw_slowdown, ClockLimit::sw_thermal, ClockLimit::hw_thermal,
                                 ClockLimit::power_brake};

}  // namespace

void add_reading(ClockTrace& trace, std::int64_t next_sample, const ClockState& state) {
  if (!trace.before_sample.empty() && state == ClockState{trace.sm_mhz.back(), trace.power_w.back(),
                                                          trace.temperature_c.back(), trace.limits.back()})
    return;
  trace.before_sample.push_back(next_sample);
  trace.sm_mhz.push_back(state.sm_mhz);
  trace.power_w.push_back(state.power_w);
  trace.temperature_c.push_back(state.temperature_c);
  trace.limits.push_back(state.limits);
}

std::vector<ClockLimit> limits_of(const ClockTrace& trace) {
  std::vector<ClockLimit> seen;
  for (const auto& word : Words<ClockLimit>::list)
    if (std::ranges::any_of(trace.limits, [&](const auto& limits) {
          return std::ranges::find(limits, word.value) != limits.end();
        }))
      seen.push_back(word.value);
  return seen;
}

std::string noise_of(const ClockTrace& trace) {
  std::vector<std::string> noise;
  if (const auto clock = range_of(trace.sm_mhz); clock && (*clock)[1] > kSteady * (*clock)[0])
    noise.push_back(fmt::format("the SM clock went from {} to {} MHz", (*clock)[0], (*clock)[1]));
  std::vector<std::string_view> throttling;
  for (const ClockLimit limit : limits_of(trace))
    if (std::ranges::find(kThrottling, limit) != kThrottling.end()) throttling.push_back(to_string(limit));
  if (!throttling.empty())
    noise.push_back(fmt::format("clocks were held down ({})", fmt::join(throttling, ", ")));
  return fmt::format("{}", fmt::join(noise, "; "));
}

}  // namespace convmish
