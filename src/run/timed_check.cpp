#include "run/timed_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "check/summary.hpp"
#include "run/reasons.hpp"
#include "run/verify.hpp"

namespace convmish {
namespace {

// The first timed launches and the last are looked at, of the others one in ten. Where a look takes a
// comparison, since the bits differ from run to run, looks grow rarer with the launches.
constexpr std::int64_t kFirst = 8, kOneIn = 10, kComparisons = 8;

/// 0.25: a launch that does nothing leaves a wrong y, but one that looks like an output.
constexpr std::uint32_t kPlausible = 0x3e800000;

/// The comparison of `count` images alone.
Comparison of_images(Comparison comparison, std::int64_t first, std::int64_t count) {
  const std::int64_t images = comparison.shape.n;
  comparison.x += first * (comparison.shape.x_elements() / images);
  comparison.y += first * (comparison.shape.y_elements() / images);
  comparison.shape.n = count;
  return comparison;
}

}  // namespace

TimedCheck::TimedCheck(Device& device, InputSets inputs)
    : device_(device), inputs_(inputs), random_(std::random_device{}()) {}

FillResult TimedCheck::admit(PreparedVariant& variant, SharedOutput& output) {
  Entry entry{
      .variant = &variant, .output = &output, .watched = 1 + static_cast<std::int64_t>(random_() % kFirst)};
  FillResult check;
  for (std::size_t set = 0; set < inputs_.size(); ++set) {
    output.poison(kPoison);
    const auto start = std::chrono::steady_clock::now();
    variant.launch(inputs_[set]->x(variant.variant().layout));
    device_.synchronize();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    entry.launch_ms = taken.count();
    auto found = damage(output);
    if (!found) found = variant.damage();
    if (found) {
      restore(output);
      variant.restore();
      check.verdict = Verdict::failed;
      check.reason = reason::wrote_outside;
      check.detail = *found;
      return check;
    }
    entry.bits[set] = device_.checksum(output.y(), output.y_bytes());
    check = judge_output(device_, variant, *inputs_[set], *inputs_[0], output);
    if (check.verdict == Verdict::failed) return check;
  }
  output.poison(kPlausible);
  entries_.push_back(entry);
  return check;
}

void TimedCheck::after_launch(std::size_t variant, std::size_t input_set, bool last) {
  Entry& entry = entries_[variant];
  ++entry.launches;
  const std::int64_t one_in = entry.repeatable ? kOneIn : std::max(kOneIn, entry.launches / kComparisons);
  const bool chosen =
      last || damaged_ || entry.launches <= kFirst || random_() % static_cast<std::uint64_t>(one_in) == 0;
  const bool watched = entry.launches == entry.watched || (last && entry.launches < entry.watched);
  if (entry.damages) return restore();  // it is timed to the end
  if (chosen && !entry.failure) entry.failure = look(entry, input_set);
  if (watched && !entry.failure) entry.failure = watch(entry, input_set);
}

std::optional<std::string> TimedCheck::look(Entry& entry, std::size_t input_set) {
  // Before the comparison, whose reference a changed input would change too.
  if (const auto found = own_damage(entry, input_set)) return found;
  SharedOutput& output = *entry.output;
  if (device_.checksum(output.y(), output.y_bytes()) == entry.bits[input_set]) return std::nullopt;
  const FillResult check = judge_output(device_, *entry.variant, *inputs_[input_set], *inputs_[0], output);
  // Other bits, but right: its sums are not ordered. Each look would now take a comparison.
  entry.repeatable = false;
  if (check.verdict != Verdict::failed) return std::nullopt;
  return fmt::format("timed launch {}: {}", entry.launches, check.detail);
}

std::optional<std::string> TimedCheck::own_damage(Entry& entry, std::size_t input_set) {
  const auto found = damage(*entry.output);
  if (!found) return std::nullopt;
  const std::string told = fmt::format("timed launch {}: {}", entry.launches, *found);
  // After the first, every launch is looked at: this one did it.
  bool own = std::exchange(damaged_, true) || entries_.size() == 1;
  restore();
  if (!own) {  // or does it again, alone
    entry.variant->launch(inputs_[input_set]->x(entry.variant->variant().layout));
    own = damage(*entry.output).has_value();
    if (own) restore();
  }
  entry.damages = own;
  culprit_found_ |= own;
  if (own) return told;
  entry.suspicion =
      fmt::format("timed launch {}, or another since the look before: {}", entry.launches, *found);
  return std::nullopt;
}

std::optional<std::string> TimedCheck::watch(Entry& entry, std::size_t input_set) {
  SharedOutput& output = *entry.output;
  output.poison(kPlausible);
  const float* const x = inputs_[input_set]->x(entry.variant->variant().layout);
  const auto ordering =
      device_.watch_launch([&] { entry.variant->launch(x); }, output.y(), output.y_bytes(), entry.launch_ms);
  output.poison(kPlausible);  // the next launch may be of this input set
  const auto found = disorder(ordering);
  if (!found) return std::nullopt;
  return fmt::format("between the timed launches, behind launch {}: {}", entry.launches, *found);
}

void TimedCheck::change_x(Change change) {
  Inputs& changed = *inputs_.back();
  if (change == Change::normal)
    changed.redraw_x(Fill::normal, random_());
  else
    changed.change_element(random_());
}

std::optional<std::string> TimedCheck::verdict(std::size_t variant) {
  Entry& entry = entries_[variant];
  if (!entry.failure && !culprit_found_) entry.failure = entry.suspicion;
  if (entry.failure) return entry.failure;
  Inputs& changed = *inputs_.back();
  const float* const x = changed.x(entry.variant->variant().layout);
  entry.output->poison(kPlausible);  // what the variant before has left is right
  device_.time_ms([&] { entry.variant->launch(x); }, Cache::hot);
  if (const auto found = damage(*entry.output)) {
    restore();
    return "after the timed launches: " + *found;
  }
  // Not all images, which take long: the one whose element was changed, of no other is the output out of
  // date; else, of a whole new x, as many as other fills take, from anywhere.
  const Shape& shape = changed.spec().shape;
  std::int64_t first = 0, count = 1;
  if (const auto& element = changed.changed_element()) {
    first = element->index / (shape.x_elements() / shape.n);
  } else {
    count = check_batch(shape, /*first=*/false);
    first = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(shape.n - count + 1));
  }
  const Comparison all = comparison_of(*entry.variant, changed, *inputs_[0], *entry.output);
  const ErrorSummary error = device_.compare(of_images(all, first, count), {});
  if (error.wrong == 0 && fits_class(error, entry.variant->variant().math)) return std::nullopt;
  const FillResult check = judge_output(device_, *entry.variant, changed, *inputs_[0], *entry.output);
  if (check.verdict != Verdict::failed) return std::nullopt;
  return "after the timed launches, with x changed in place: " + check.detail;
}

std::optional<std::string> TimedCheck::damage(SharedOutput& output) {
  if (auto found = damage_of(inputs_, output)) return found;
  for (const Entry& entry : entries_)
    if (auto found = entry.variant->damage()) return found;
  return std::nullopt;
}

void TimedCheck::restore() {
  if (!entries_.empty()) restore(*entries_.front().output);  // all share one
}

void TimedCheck::restore(SharedOutput& output) {
  for (Inputs* const inputs : inputs_) inputs->restore();
  output.restore();
  for (const Entry& entry : entries_) entry.variant->restore();
}

}  // namespace convmish
