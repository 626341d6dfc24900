// What a run does now, and about how long it will go on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/variant.hpp"
#include "report/terminal.hpp"
#include "run/step.hpp"

namespace convmish {

/// How long a run will still take, from what it has done. Moments are seconds of any one clock.
class TimeLeft {
 public:
  /// `checks`: of a variant on a shape, 0 without. `timing_s`: the most that timing a shape may take, unless
  /// it is noisy and done again; 0 without, nothing where no one can tell.
  TimeLeft(std::size_t shapes, std::size_t variants, std::size_t checks, std::optional<double> timing_s)
      : shapes_(shapes), steps_(variants * checks), variants_(variants), timing_s_(timing_s) {}

  void begin_shape(double now);
  void end_shape(double now);
  /// Each of the checks is made of all variants before the next.
  void begin_check(std::size_t check, std::size_t variant) {
    done_ = std::min(check * variants_ + variant, steps_);
  }
  void begin_timing(double now);

  /// Seconds. Nothing before the first check of a run has ended, nor, where no one can tell what timing
  /// takes, before the first shape has.
  std::optional<double> at(double now) const;

 private:
  std::optional<double> of_shape_at(double now) const;

  std::size_t shapes_, steps_, variants_;
  std::optional<double> timing_s_;
  double shape_start_ = 0, finished_s_ = 0;  // finished_s_: of all shapes that have ended
  std::size_t finished_ = 0, done_ = 0;      // shapes; checks of this shape
  std::optional<double> timing_start_;
};

/// Of a run of so many variants that is about to begin.
TimeLeft time_left_of(const RunOptions& run, std::size_t variants);

/// Tells that a step of the run has begun, or goes on; `variant`: which of them, from 0.
void begin_step(TimeLeft& left, const RunOptions& run, std::size_t variant, const Step& step, double now);

/// One line on stderr that is written anew with each step; only on a terminal that can take a line back.
class ProgressLine {
 public:
  ProgressLine(const RunOptions& run, const std::vector<const Variant*>& variants);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void begin_shape();
  void show(const Variant& variant, const Step& step);
  void end_shape();

 private:
  double now() const;
  void clear();

  const RunOptions& run_;
  const std::vector<const Variant*>& variants_;
  TerminalStyle style_;
  TimeLeft left_;
  std::size_t shape_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "40 s", "2:05 min", "1:10 h".
std::string duration_text(double seconds);

}  // namespace convmish
