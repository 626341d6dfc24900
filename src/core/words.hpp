// The enumerations that code, JSON, messages and documents share, each with its one spelling.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace convmish {

enum class DeviceKind { cuda, cpu };

/// What rounding a variant may commit: multiplicands rounded so, fp32 accumulation.
enum class MathClass { fp32, tf32, fp16, bf16 };

/// Memory order of x and y, slowest first. nhwc implies filter order k r s c; nchw implies k c r s.
enum class Layout { nchw, nhwc };

/// Which execution pipe does the multiply-adds; `unknown` where a library decides.
enum class Pipe { ffma, tensor_tf32, tensor_fp16, unknown };

/// `direct` sums the products themselves; `transform` (Winograd, FFT) errs by norm, not by element.
enum class Algorithm { direct, transform };

/// The coordinates of an output.
enum class Axis { n, k, p, q };

/// How the inputs of a case are drawn (src/check/fill.hpp defines each).
enum class Fill { kernelbench, normal, positive, wide, tails, exact, delta, special };

/// What the last-level cache holds when a launch is timed: what the launch before left, or nothing of use.
enum class Cache { hot, cold };

/// Why a GPU's clocks are not the highest, as its driver tells (NVML's "clocks event reasons").
enum class ClockLimit {
  application_clocks,
  sw_power_cap,
  hw_slowdown,
  sync_boost,
  sw_thermal,
  hw_thermal,
  power_brake,
  display_clocks
};

/// Why a case ran with its configuration: the variant's rule, a tuning table, the times of all of them, or
/// the user's word.
enum class ChosenBy { rule, table, tuning, request };

/// What a variant is for. A selection takes `standard` ones by name, by glob and by `all`; `ablation`, which
/// takes a step away from another to measure it, by its exact name or by the group's only; `mutant`, which is
/// wrong on purpose, never: selftest runs those.
enum class Group { standard, ablation, mutant };

enum class Verdict { passed, failed, mistrusted, skipped, crashed, timed_out };

/// A name and its value; the one place where a word is spelled.
template <class Enum>
struct Word {
  Enum value;
  std::string_view text;
};

template <class Enum>
struct Words;  // specialised below: `name` (for messages) and `list`

template <>
struct Words<DeviceKind> {
  static constexpr std::string_view name = "device";
  static constexpr std::array list{Word{DeviceKind::cuda, "cuda"}, Word{DeviceKind::cpu, "cpu"}};
};
template <>
struct Words<MathClass> {
  static constexpr std::string_view name = "math class";
  static constexpr std::array list{Word{MathClass::fp32, "fp32"}, Word{MathClass::tf32, "tf32"},
                                   Word{MathClass::fp16, "fp16"}, Word{MathClass::bf16, "bf16"}};
};
template <>
struct Words<Group> {
  static constexpr std::string_view name = "group";
  static constexpr std::array list{Word{Group::standard, "standard"}, Word{Group::ablation, "ablation"},
                                   Word{Group::mutant, "mutant"}};
};
template <>
struct Words<Layout> {
  static constexpr std::string_view name = "layout";
  static constexpr std::array list{Word{Layout::nchw, "nchw"}, Word{Layout::nhwc, "nhwc"}};
};
template <>
struct Words<Pipe> {
  static constexpr std::string_view name = "pipe";
  static constexpr std::array list{Word{Pipe::ffma, "ffma"}, Word{Pipe::tensor_tf32, "tensor_tf32"},
                                   Word{Pipe::tensor_fp16, "tensor_fp16"}, Word{Pipe::unknown, "unknown"}};
};
template <>
struct Words<Algorithm> {
  static constexpr std::string_view name = "algorithm";
  static constexpr std::array list{Word{Algorithm::direct, "direct"},
                                   Word{Algorithm::transform, "transform"}};
};
template <>
struct Words<Axis> {
  static constexpr std::string_view name = "axis";
  static constexpr std::array list{Word{Axis::n, "n"}, Word{Axis::k, "k"}, Word{Axis::p, "p"},
                                   Word{Axis::q, "q"}};
};
template <>
struct Words<Fill> {
  static constexpr std::string_view name = "fill";
  static constexpr std::array list{Word{Fill::kernelbench, "kernelbench"},
                                   Word{Fill::normal, "normal"},
                                   Word{Fill::positive, "positive"},
                                   Word{Fill::wide, "wide"},
                                   Word{Fill::tails, "tails"},
                                   Word{Fill::exact, "exact"},
                                   Word{Fill::delta, "delta"},
                                   Word{Fill::special, "special"}};
};
template <>
struct Words<Cache> {
  static constexpr std::string_view name = "cache";
  static constexpr std::array list{Word{Cache::hot, "hot"}, Word{Cache::cold, "cold"}};
};
template <>
struct Words<ClockLimit> {
  static constexpr std::string_view name = "clock limit";
  static constexpr std::array list{Word{ClockLimit::application_clocks, "application_clocks"},
                                   Word{ClockLimit::sw_power_cap, "sw_power_cap"},
                                   Word{ClockLimit::hw_slowdown, "hw_slowdown"},
                                   Word{ClockLimit::sync_boost, "sync_boost"},
                                   Word{ClockLimit::sw_thermal, "sw_thermal"},
                                   Word{ClockLimit::hw_thermal, "hw_thermal"},
                                   Word{ClockLimit::power_brake, "power_brake"},
                                   Word{ClockLimit::display_clocks, "display_clocks"}};
};
template <>
struct Words<ChosenBy> {
  static constexpr std::string_view name = "choice";
  static constexpr std::array list{Word{ChosenBy::rule, "rule"}, Word{ChosenBy::table, "table"},
                                   Word{ChosenBy::tuning, "tuning"}, Word{ChosenBy::request, "request"}};
};
template <>
struct Words<Verdict> {
  static constexpr std::string_view name = "verdict";
  static constexpr std::array list{
      Word{Verdict::passed, "passed"},         Word{Verdict::failed, "failed"},
      Word{Verdict::mistrusted, "mistrusted"}, Word{Verdict::skipped, "skipped"},
      Word{Verdict::crashed, "crashed"},       Word{Verdict::timed_out, "timed_out"}};
};

template <class Enum>
requires requires {
  Words<Enum>::list;
}
constexpr std::string_view to_string(Enum value) {
  for (const auto& word : Words<Enum>::list)
    if (word.value == value) return word.text;
  return "?";
}

template <class Enum>
constexpr std::optional<Enum> from_string(std::string_view text) {
  for (const auto& word : Words<Enum>::list)
    if (word.text == text) return word.value;
  return std::nullopt;
}

}  // namespace convmish
