#include "run/timing.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "core/statistics.hpp"

namespace convmish {
namespace {

/// Data beyond this many times the last-level cache evicts itself: no flush is needed.
constexpr double kSelfEvicting = 4;

struct Timed {
  std::vector<double> samples;
  double total_ms = 0;        // of the samples
  double spent_ms = 0;        // the host's clock, with what surrounds a sample
  std::size_t next_look = 0;  // at the interval, in samples
  bool converged = false;
  bool done = false;
};

/// A GPU is timed cold: a kernel's inputs come from elsewhere in real use. On a CPU the caches are so large
/// that emptying them would take longer than most launches.
Cache cache_for(const Shape& shape, const DeviceInfo& device) {
  const bool evicts_itself = shape.least_bytes() > kSelfEvicting * static_cast<double>(device.l2_bytes);
  return device.kind == DeviceKind::cpu || evicts_itself ? Cache::hot : Cache::cold;
}

void update(Timed& timed, const TimingOptions& options) {
  if (options.samples) {
    timed.done = static_cast<int>(timed.samples.size()) >= *options.samples;
    timed.converged = timed.done;
    return;
  }
  timed.done = timed.spent_ms >= 1e3 * options.most_s();
  if (timed.total_ms < 1e3 * options.least_s() || (timed.samples.size() < timed.next_look && !timed.done))
    return;
  // Sorting all samples takes longer with each: look again when there are a sixteenth more.
  timed.next_look = timed.samples.size() + timed.samples.size() / 16 + 1;
  const auto width = relative_half_width(summarise_samples(timed.samples));
  timed.converged = width && *width <= options.ci_half_width;
  timed.done |= timed.converged;
}

}  // namespace

std::vector<TimeSummary> time_variants(Device& device, std::span<PreparedVariant* const> variants,
                                       std::span<Inputs* const> input_sets, const TimingOptions& options,
                                       std::uint64_t seed, const TimingObserver& observer) {
  if (variants.empty()) return {};
  const Cache cache = options.cache.value_or(cache_for(input_sets.front()->spec().shape, device.info()));
  std::mt19937_64 random(seed);
  std::vector<Timed> timed(variants.size());
  std::vector<std::size_t> order(variants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;

  // The set changes with each launch, whichever variant's: y never holds the right output beforehand.
  std::size_t set = 0;
  const auto launch_once = [&](std::size_t i) {
    observer.before_launch(i);
    PreparedVariant& variant = *variants[i];
    set = (set + 1) % input_sets.size();
    const float* const x = input_sets[set]->x(variant.variant().layout);
    return device.time_ms([&] { variant.launch(x); }, cache);
  };

  // Warm-up: one launch each, for module loading and for the clocks.
  for (const std::size_t i : order) launch_once(i);

  while (!order.empty()) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const auto start = std::chrono::steady_clock::now();
      const double ms = launch_once(i);
      timed[i].samples.push_back(ms);
      timed[i].total_ms += ms;
      update(timed[i], options);
      observer.after_launch(i, set, timed[i].done);
      timed[i].spent_ms +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    std::erase_if(order, [&](std::size_t i) { return timed[i].done; });
  }

  std::vector<TimeSummary> summaries;
  for (Timed& one : timed) {
    summaries.push_back(summarise_samples(std::move(one.samples)));
    summaries.back().converged = one.converged;
    summaries.back().cache = cache;
  }
  return summaries;
}

}  // namespace convmish
