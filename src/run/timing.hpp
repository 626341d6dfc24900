// How long do variants take, side by side?
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/result.hpp"
#include "run/prepared.hpp"

namespace convmish {

/// Told of each launch, outside its time.
struct TimingObserver {
  std::function<void(std::size_t variant)> before_launch;
  /// Only of launches that give a sample. `last`: of this variant.
  std::function<void(std::size_t variant, std::size_t input_set, bool last)> after_launch;
  /// A launch has thrown, and may have left damage that is not to be blamed on the next.
  std::function<void()> after_error;
};

/// What the timed launches of one variant gave.
struct Timing {
  std::optional<TimeSummary> time;   // absent where `error` is set
  std::optional<ClockTrace> clocks;  // absent there too, and where the device does not tell
  std::string noise;                 // see noise_of()
  bool remeasured = false;           // the first samples were noisy and are gone; these are others
  std::exception_ptr error;          // what a launch or the observer threw, which ended the variant's timing
};

/// Times all `variants` in interleaved rounds, each round in a random order drawn from `seed`, so that a
/// drift of clocks or temperature hits all alike. A variant leaves the rounds when its median's interval is
/// narrow enough or its time is up. Launches take turns with the x of `input_sets`. Clocks are read between
/// rounds. The variants whose times are noisy are then timed once more, in rounds of their own.
///
/// Result i belongs to variant i, its sample j to round j; that of a remeasured one to the later rounds. A
/// GPU is warmed up before its first round and before those of the remeasured. Throws EnvironmentError, and
/// what the device throws when it is lost.
std::vector<Timing> time_variants(Device& device, std::span<PreparedVariant* const> variants,
                                  std::span<Inputs* const> input_sets, const TimingOptions& options,
                                  std::uint64_t seed, const TimingObserver& observer);

}  // namespace convmish
