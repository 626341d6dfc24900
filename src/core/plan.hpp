// Options and config files become one RunPlan: what to run, ordered, before any device is touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

/// More shapes than this in one run are a slip in a sweep, not a plan.
inline constexpr std::size_t kMaxShapes = 100'000;
inline constexpr double kMaxSeconds = 86'400;  // of a time option: one day
inline constexpr int kMaxSamples = 1'000'000;
inline constexpr double kLeastDutyCycle = 0.01;

/// What a framework's eager mode does: speed-ups are told against it.
inline constexpr std::string_view kDefaultBaseline = "cudnn_unfused";

struct TimingOptions {
  // As asked for. A default gives way to the other where that is given.
  std::optional<double> min_time_s, max_time_s;
  double ci_half_width = 0.005;  // stop rule: half width of the median's 95 % interval, relative
  std::optional<int> samples;    // a fixed count instead of the stop rule
  std::optional<Cache> cache;    // nothing: by the size of the data, see cache_for() in run/timing.cpp
  // Of the time between two launches on a GPU, the share in which it works: it rests for the remainder.
  // Nothing only in reports before 1.3, of runs without rests.
  std::optional<double> duty_cycle = 0.5;

  /// Sum of a variant's samples on one shape, at least.
  double least_s() const { return min_time_s.value_or(std::min(0.1, max_time_s.value_or(0.1))); }
  /// All told, with what surrounds a sample: stop here even when the interval is wide.
  double most_s() const { return max_time_s.value_or(std::max(2.0, min_time_s.value_or(2.0))); }
};

/// A rule to tell beside the strict one: allclose, against float64 on every fill that is checked; or that of
/// KernelBench, five inputs within 1e-4 of float64 and of a framework's TF32 result.
struct Tolerance {
  enum class Kind { strict, kernelbench, allclose };
  Kind kind = Kind::strict;
  double rtol = 0, atol = 0;  // of allclose

  bool operator==(const Tolerance&) const = default;
};

/// "strict", "kernelbench" or "rtol=R,atol=A". Throws InputError.
Tolerance parse_tolerance(const std::string& text);
std::string to_string(const Tolerance& tolerance);

/// What a config file can say; the command line can say the same and more, and wins.
struct RunOptions {
  std::vector<std::string> variants;  // patterns for select_variants(); empty means all
  std::vector<Shape> shapes;          // empty: the device's default shape
  std::vector<Fill> fills;            // empty: the default set of the check
  std::uint64_t seed = 42;
  std::vector<Tolerance> tolerances;  // beside the strict rule, which is always told
  bool check = true;
  bool time = true;
  TimingOptions timing;
  int timeout_s = 120;  // a variant whose check, or one timed launch, takes longer is stopped
};

bool is_valid_seconds(double seconds);
bool is_valid_timeout(std::int64_t seconds);
bool is_valid_half_width(double share);
bool is_valid_samples(std::int64_t count);
bool is_valid_duty_cycle(double share);
/// What these options must be, for messages.
std::string wanted_seconds();
std::string wanted_timeout();
std::string wanted_half_width();
std::string wanted_samples();
std::string wanted_duty_cycle();

/// "hot", "cold", or "auto" for nothing: by the size of the data. Throws InputError.
std::optional<Cache> parse_cache(const std::string& text);

/// Why these options, each valid by itself, cannot go together; nothing if they can.
std::optional<std::string> check_options(const RunOptions& options);

/// Keeps the first of equal shapes, fills and tolerances: sweeps may overlap, and a case runs once.
void drop_repeats(RunOptions& options);

/// Reads a config file. Every mistake is an InputError "FILE: /json/pointer: what is wrong; what would be
/// right". A sweep's lists multiply, n slowest and k fastest.
RunOptions load_config(const std::filesystem::path& path);

}  // namespace convmish
