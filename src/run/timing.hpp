// How long do variants take, side by side?
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan.hpp"
#include "core/result.hpp"
#include "run/prepared.hpp"

namespace convmish {

/// Told of each launch, outside its time.
struct TimingObserver {
  std::function<void(std::size_t variant)> before_launch;
  /// Not of the warm-up. `last`: of this variant.
  std::function<void(std::size_t variant, std::size_t input_set, bool last)> after_launch;
};

/// Times all `variants` in interleaved rounds, each round in a random order drawn from `seed`, so that a
/// drift of clocks or temperature hits all alike. A variant leaves the rounds when its median's interval is
/// narrow enough or its time is up. Launches take turns with the x of `input_sets`.
///
/// Result i belongs to variant i.
std::vector<TimeSummary> time_variants(Device& device, std::span<PreparedVariant* const> variants,
                                       std::span<Inputs* const> input_sets, const TimingOptions& options,
                                       std::uint64_t seed, const TimingObserver& observer);

}  // namespace convmish
