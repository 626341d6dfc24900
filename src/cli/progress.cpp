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

std::optional<double> TimeLeft::at(double now) const {
  const double spent = now - shape_start_;
  double of_shape = 0;
  if (timing_start_) {
    of_shape = std::max(0.0, timing_s_ - (now - *timing_start_));
  } else if (done_ > 0) {
    of_shape = spent * static_cast<double>(steps_ - done_) / static_cast<double>(done_) + timing_s_;
  } else if (finished_ > 0) {
    of_shape = std::max(0.0, finished_s_ / static_cast<double>(finished_) - spent);
  } else {
    return std::nullopt;
  }
  const double a_shape = finished_ > 0 ? finished_s_ / static_cast<double>(finished_) : spent + of_shape;
  return of_shape + a_shape * static_cast<double>(shapes_ - finished_ - 1);
}

ProgressLine::ProgressLine(const RunOptions& run, const std::vector<const Variant*>& variants)
    : run_(run),
      variants_(variants),
      style_(terminal_style(STDERR_FILENO)),
      left_(run.shapes.size(), variants.size(), run.check ? run.fills.size() : 0,
            run.time ? run.timing.most_s() * static_cast<double>(variants.size()) : 0) {}

void ProgressLine::begin_shape() {
  left_.begin_shape(now());
}

void ProgressLine::show(const Variant& variant, const Step& step) {
  if (!style_.rewrites) return;
  if (step.kind == Step::Kind::check) {
    const auto fill = std::ranges::find(run_.fills, step.fill) - run_.fills.begin();
    const auto of_all = std::ranges::find(variants_, &variant) - variants_.begin();
    left_.begin_check(static_cast<std::size_t>(fill), static_cast<std::size_t>(of_all));
  } else {
    left_.begin_timing(now());
  }
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
