#include "run/timing.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "core/clocks.hpp"
#include "core/error.hpp"
#include "core/statistics.hpp"

namespace convmish {
namespace {

/// Data beyond this many times the last-level cache evicts itself: no flush is needed.
constexpr double kSelfEvicting = 4;

/// A launch that keeps the host busy for longer waits for the device itself: no lead hides that.
constexpr double kMostLeadUs = 2000;

/// How old a reading of the clocks may be between rounds: those of short launches would else be spent in
/// questions to the driver.
constexpr std::chrono::milliseconds kOldestClocks{20};

/// A variant under way.
struct Timed {
  Timing timing;
  std::vector<double> samples;
  double lead_us = Device::kLeadUs;
  std::int64_t host_gaps = 0;  // samples that no lead was long enough for
  double total_ms = 0;         // of the samples
  double spent_ms = 0;         // the host's clock, with what surrounds a sample
  std::size_t next_look = 0;   // at the interval, in samples
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
  const std::size_t count = timed.samples.size();
  timed.done = options.samples ? count >= static_cast<std::size_t>(*options.samples)
                               : timed.spent_ms >= 1e3 * options.most_s();
  const bool may_stop =
      !options.samples && timed.total_ms >= 1e3 * options.least_s() && count >= timed.next_look;
  if (!may_stop && !timed.done) return;
  // Sorting all samples takes longer with each: look again when there are a sixteenth more.
  timed.next_look = count + count / 16 + 1;
  const auto width = relative_half_width(summarise_samples(timed.samples));
  timed.converged = width && *width <= options.ci_half_width;
  timed.done |= timed.converged;
}

class Rounds {
 public:
  Rounds(Device& device, std::span<PreparedVariant* const> variants, std::span<Inputs* const> input_sets,
         const TimingOptions& options, std::uint64_t seed, const TimingObserver& observer)
      : device_(device),
        variants_(variants),
        input_sets_(input_sets),
        options_(options),
        cache_(options.cache.value_or(cache_for(input_sets.front()->spec().shape, device.info()))),
        rest_per_work_(device.info().kind == DeviceKind::cuda ? 1 / options.duty_cycle.value_or(1) - 1 : 0),
        random_(seed),
        observer_(observer) {}

  /// Times the variants of these indices, from the warm-up on. Result i belongs to indices[i].
  std::vector<Timing> time(const std::vector<std::size_t>& indices) {
    timed_.assign(variants_.size(), {});
    std::vector<std::size_t> order = indices;
    warm_up(order);
    read_clocks(order, {});  // not those of an earlier pass
    while (!order.empty()) {
      std::shuffle(order.begin(), order.end(), random_);
      for (const std::size_t i : order) attempt(i, [&] { take_sample(i); });
      read_clocks(order, kOldestClocks);
      leave(order);
    }
    std::vector<Timing> timings;
    for (const std::size_t i : indices) timings.push_back(finish(timed_[i]));
    return timings;
  }

 private:
  /// What `step` throws ends the variant's timing alone, unless the device is lost with it.
  template <class Step>
  void attempt(std::size_t i, Step step) {
    try {
      step();
    } catch (const EnvironmentError&) {
      throw;  // says nothing of the variant
    } catch (...) {
      timed_[i].timing.error = std::current_exception();
      timed_[i].done = true;
      device_.synchronize();  // throws where the device is lost
      observer_.after_error();
    }
  }

  void leave(std::vector<std::size_t>& order) {
    std::erase_if(order, [&](std::size_t i) { return timed_[i].done; });
  }

  /// At least one launch each, which loads the module. A GPU is launched on until it has worked, with leads
  /// and launches, for as long as its clocks need to rise.
  void warm_up(std::vector<std::size_t>& order) {
    const double least_ms = device_.info().kind == DeviceKind::cuda ? Device::kWarmUpMs : 0;
    double worked_ms = 0;
    do {
      for (const std::size_t i : order)
        attempt(i, [&] { worked_ms += launch(i).ms + 1e-3 * timed_[i].lead_us; });
      leave(order);
    } while (!order.empty() && worked_ms < least_ms);
  }

  /// The input set changes with each launch, whichever variant's: y never holds the right output beforehand.
  TimedLaunch launch(std::size_t i) {
    observer_.before_launch(i);
    PreparedVariant& variant = *variants_[i];
    set_ = (set_ + 1) % input_sets_.size();
    const float* const x = input_sets_[set_]->x(variant.variant().layout);
    const TimedLaunch launched = device_.time_launch([&] { variant.launch(x); }, cache_, timed_[i].lead_us);
    if (rest_per_work_ > 0) device_.rest_ms(rest_per_work_ * (launched.ms + 1e-3 * timed_[i].lead_us));
    return launched;
  }

  /// A launch in which the device may have waited for the host is made again: at once, since the host may
  /// have been held up by chance, then with ever longer leads, for a variant that takes the host that long.
  double launch_without_gap(std::size_t i) {
    Timed& timed = timed_[i];
    for (bool again = false;; again = true) {
      const TimedLaunch launched = launch(i);
      if (!launched.enqueue_us || *launched.enqueue_us <= timed.lead_us) return launched.ms;
      if (timed.lead_us >= kMostLeadUs) {
        ++timed.host_gaps;
        return launched.ms;
      }
      if (again) timed.lead_us = std::min(2 * timed.lead_us, kMostLeadUs);
    }
  }

  void take_sample(std::size_t i) {
    Timed& timed = timed_[i];
    const auto start = std::chrono::steady_clock::now();
    const double ms = launch_without_gap(i);
    timed.samples.push_back(ms);
    timed.total_ms += ms;
    update(timed, options_);
    observer_.after_launch(i, set_, timed.done);
    timed.spent_ms +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  void read_clocks(const std::vector<std::size_t>& order, std::chrono::milliseconds oldest) {
    const auto state = device_.clock_state(oldest);
    if (!state) return;
    for (const std::size_t i : order) {
      auto& clocks = timed_[i].timing.clocks;
      if (!clocks) clocks.emplace();
      add_reading(*clocks, static_cast<std::int64_t>(timed_[i].samples.size()), *state);
    }
  }

  Timing finish(Timed& timed) const {
    Timing timing = std::move(timed.timing);
    if (timing.error) {
      timing.clocks.reset();  // those of no time
      return timing;
    }
    timing.time = summarise_samples(std::move(timed.samples));
    timing.time->converged = timed.converged;
    timing.time->cache = cache_;
    if (device_.info().kind == DeviceKind::cuda) timing.time->duty_cycle = options_.duty_cycle;
    timing.time->host_gaps = timed.host_gaps;
    if (timing.clocks) timing.noise = noise_of(*timing.clocks);
    return timing;
  }

  Device& device_;
  std::span<PreparedVariant* const> variants_;
  std::span<Inputs* const> input_sets_;
  const TimingOptions& options_;
  Cache cache_;
  double rest_per_work_;  // of a GPU: under a power limit, each launch finds it at its full clock
  std::mt19937_64 random_;
  const TimingObserver& observer_;
  std::vector<Timed> timed_;  // by variant
  std::size_t set_ = 0;       // of the last launch
};

}  // namespace

std::vector<Timing> time_variants(Device& device, std::span<PreparedVariant* const> variants,
                                  std::span<Inputs* const> input_sets, const TimingOptions& options,
                                  std::uint64_t seed, const TimingObserver& observer) {
  Rounds rounds(device, variants, input_sets, options, seed, observer);
  std::vector<std::size_t> all(variants.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Timing> timings = rounds.time(all);

  std::vector<std::size_t> noisy;
  for (const std::size_t i : all)
    if (!timings[i].noise.empty()) noisy.push_back(i);
  if (noisy.empty()) return timings;
  std::vector<Timing> again = rounds.time(noisy);
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    timings[noisy[i]] = std::move(again[i]);
    timings[noisy[i]].remeasured = true;
  }
  return timings;
}

}  // namespace convmish
