#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/shape_text.hpp"

namespace convmish {

void TimeLeft::begin_shape(double now) {
  shape_start_ = now;
  done_ = 0;
  timing_start_.reset();
}

void TimeLeft::end_shape(double now) {
  finished_s_ += now - shape_start_;
  ++finished_;
}

void TimeLeft::begin_timing(double now) {
  if (!timing_start_) timing_start_ = now;
}

std::optional<double> TimeLeft::of_shape_at(double now) const {
  const double spent = now - shape_start_;
  if (timing_s_ && timing_start_) return std::max(0.0, *timing_s_ - (now - *timing_start_));
  if (timing_s_ && done_ > 0)
    return spent * static_cast<double>(steps_ - done_) / static_cast<double>(done_) + *timing_s_;
  if (finished_ > 0) return std::max(0.0, finished_s_ / static_cast<double>(finished_) - spent);
  return std::nullopt;
}

std::optional<double> TimeLeft::at(double now) const {
  const auto of_shape = of_shape_at(now);
  if (!of_shape) return std::nullopt;
  const double a_shape =
      finished_ > 0 ? finished_s_ / static_cast<double>(finished_) : now - shape_start_ + *of_shape;
  return *of_shape + a_shape * static_cast<double>(shapes_ - finished_ - 1);
}

TimeLeft time_left_of(const RunOptions& run, std::size_t variants) {
  std::size_t checks = run.check ? run.fills.size() : 0;
  if (std::ranges::find(run.tolerances, Tolerance::Kind::kernelbench, &Tolerance::kind) !=
      run.tolerances.end())
    ++checks;  // the last one
  std::optional<double> timing_s = 0;
  if (run.time && run.timing.samples)
    timing_s.reset();  // as long as so many launches take
  else if (run.time)
    timing_s = run.timing.most_s() * static_cast<double>(variants);
  return {run.shapes.size(), variants, checks, timing_s};
}

void begin_step(TimeLeft& left, const RunOptions& run, std::size_t variant, const Step& step, double now) {
  switch (step.kind) {
    case Step::Kind::idle:
    case Step::Kind::tune:
      return;
    case Step::Kind::check:
      return left.begin_check(
          static_cast<std::size_t>(std::ranges::find(run.fills, step.fill) - run.fills.begin()), variant);
    case Step::Kind::check_tolerance:
      return left.begin_check(run.fills.size(), variant);
    case Step::Kind::prepare:
    case Step::Kind::time:
    case Step::Kind::check_after_timing:
      return left.begin_timing(now);
  }
}

ProgressLine::ProgressLine(const RunOptions& run, const std::vector<const Variant*>& variants)
    : run_(run),
      variants_(variants),
      style_(terminal_style(STDERR_FILENO)),
      left_(time_left_of(run, variants.size())) {}

void ProgressLine::begin_shape() {
  left_.begin_shape(now());
}

void ProgressLine::show(const Variant& variant, const Step& step) {
  if (!style_.rewrites) return;
  const auto of_all = std::ranges::find(variants_, &variant) - variants_.begin();
  begin_step(left_, run_, static_cast<std::size_t>(of_all), step, now());
  std::string line = run_.shapes.size() > 1 ? fmt::format("[{}/{}] ", shape_ + 1, run_.shapes.size()) : "";
  line += fmt::format("{}: {}:{}, {}", to_string(run_.shapes[shape_]), variant.name, to_string(variant.math),
                      to_string(step));
  if (const auto left = left_.at(now())) line += fmt::format(", about {} left", duration_text(*left));
  line.resize(
      std::min(line.size(), static_cast<std::size_t>(style_.width - 1)));  // one row can be taken back
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
}

void ProgressLine::end_shape() {
  left_.end_shape(now());
  ++shape_;
  clear();
}

double ProgressLine::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ProgressLine::clear() {
  if (style_.rewrites) fmt::print(stderr, "\r\x1b[K");
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace convmish
