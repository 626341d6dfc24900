#include "run/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "check/summary.hpp"
#include "run/forensics.hpp"
#include "run/reasons.hpp"

namespace convmish {
namespace {

using namespace std::chrono_literals;

/// How long an output that launch left unwritten is watched: a busy host may be slow to start a thread.
constexpr auto kLateStart = 200ms;

/// Outputs at which 0 would fail, of all: with fewer than this, passing proves nothing.
constexpr double kLeastTelling = 0.1;

std::string describe_wrong(const ErrorSummary& error, const std::string& forensics) {
  const OutputAt& first = *error.first_wrong_at;
  const OutputAt& worst = *error.worst_at;
  return fmt::format(
      "{} of {} outputs are wrong{}: {}; first at n{} k{} p{} q{}: {:.9g} instead of {:.9g}; "
      "worst at n{} k{} p{} q{}: {:.9g} instead of {:.9g}, {:.6g} times the allowed error",
      error.wrong, error.compared,
      error.nan_outputs ? fmt::format(" ({} are NaN)", error.nan_outputs) : std::string(), forensics, first.n,
      first.k, first.p, first.q, first.found, first.expected, worst.n, worst.k, worst.p, worst.q, worst.found,
      worst.expected, error.worst_ratio);
}

void overrule(FillResult& result, std::string_view reason, std::string detail) {
  result.verdict = Verdict::failed;
  result.reason = reason;
  result.detail = std::move(detail);
}

void fail(FillResult& result, std::string_view reason, std::string detail) {
  if (result.verdict != Verdict::failed)
    overrule(result, reason, std::move(detail));  // the first cause stands
}

void judge_summary(FillResult& result, MathClass declared) {
  const ErrorSummary& error = result.error;
  if (!fits_class(error, declared))
    return fail(result, reason::wrong_class,
                fmt::format("declared {}, but its error is that of {} (R = {:.3g}, at most {:.3g})",
                            to_string(declared), error.consistent_with, *error.fingerprint,
                            fingerprint_limit(declared)));
  if (1 - error.zero_accepted_share < kLeastTelling) {
    result.verdict = Verdict::mistrusted;
    result.reason = reason::weak_data;
    result.detail =
        fmt::format("an output of 0 would pass at {:.1f} % of the outputs: this data proves nothing",
                    100 * error.zero_accepted_share);
  } else if (std::isnan(error.relative_frobenius)) {
    result.verdict = Verdict::mistrusted;
    result.reason = reason::weak_data;
    result.detail = "no output that was compared is a finite number: this data proves nothing";
  }
}

/// Whether y comes to hold other bits within `patience`; looks at least once.
bool changes(Device& device, SharedOutput& output, std::uint64_t bits, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (device.checksum(output.y(), output.y_bytes()) == bits) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace

std::optional<std::string> disorder(Device::Ordering ordering) {
  switch (ordering) {
    case Device::Ordering::in_stream:
      break;
    case Device::Ordering::outside_stream:
      return "y changed by work that was not on the launch's stream";
    case Device::Ordering::waited:
      return "launch waited for its stream, which was held";
  }
  return std::nullopt;
}

std::vector<Fill> default_fills() {
  return {Fill::kernelbench, Fill::normal, Fill::positive, Fill::wide, Fill::exact, Fill::special};
}

std::int64_t check_batch(const Shape& shape, bool first) {
  if (first) return shape.n;
  constexpr std::int64_t kOutputs = std::int64_t{1} << 21;
  const std::int64_t image = shape.y_elements() / shape.n;
  return std::clamp<std::int64_t>((kOutputs + image - 1) / image, 1, shape.n);
}

Comparison comparison_of(const Computation& computation, Inputs& inputs, Inputs& weights, const float* y) {
  const FillSpec& spec = inputs.spec();
  return {
      .shape = spec.shape,
      .x = inputs.x(computation.layout),
      .filter = weights.filter(computation.layout),
      .bias = weights.bias(),
      .y = y,
      .layout = computation.layout,
      .rule = acceptance_rule(computation.math, spec.shape, spec.fill == Fill::exact, computation.algorithm),
      .algorithm = computation.algorithm,
      .fingerprint = spec.fill == Fill::normal,
      .activation_only = spec.fill == Fill::delta};
}

Comparison comparison_of(const PreparedVariant& prepared, Inputs& inputs, Inputs& weights,
                         SharedOutput& output) {
  const Variant& variant = prepared.variant();
  return comparison_of({variant.math, variant.layout, prepared.plan().algorithm}, inputs, weights,
                       output.y());
}

FillResult judge_comparison(Device& device, const Comparison& comparison, MathClass declared,
                            const OperandSource& operands, std::uint32_t poison,
                            std::span<ReferencePoint> samples) {
  FillResult result{.batch = comparison.shape.n};
  result.error = device.compare(comparison, samples);
  if (result.error.wrong > 0) {
    result.forensics = investigate(device, {comparison, result.error, operands, poison});
    fail(result, reason::outside_tolerance,
         describe_wrong(result.error, describe(*result.forensics, comparison.shape)));
  } else {
    judge_summary(result, declared);
  }
  return result;
}

FillResult judge_output(Device& device, const PreparedVariant& prepared, Inputs& inputs, Inputs& weights,
                        SharedOutput& output, std::span<ReferencePoint> samples) {
  const FillSpec& spec = inputs.spec();
  const DrawnOperands operands(spec, inputs.changed_element(), weights.spec());
  FillResult result = judge_comparison(device, comparison_of(prepared, inputs, weights, output),
                                       prepared.variant().math, operands, output.poison_word(), samples);
  result.fill = spec.fill;
  result.seed = spec.seed;
  return result;
}

std::optional<FillResult> not_applicable(const FillSpec& spec, Algorithm algorithm) {
  if (algorithm == Algorithm::direct || (spec.fill != Fill::special && spec.fill != Fill::delta))
    return std::nullopt;
  return FillResult{.fill = spec.fill,
                    .seed = spec.seed,
                    .batch = spec.shape.n,
                    .verdict = Verdict::skipped,
                    .reason = std::string(reason::not_applicable),
                    .detail = spec.fill == Fill::special
                                  ? "a transform spreads NaN and infinities over its whole tile"
                                  : "a transform's pre-activation is no multiplicand, and it overflows where "
                                    "the largest floats meet"};
}

FillResult verify(Device& device, PreparedVariant& prepared, Inputs& inputs, SharedOutput& output,
                  std::span<ReferencePoint> samples) {
  if (auto skipped = not_applicable(inputs.spec(), prepared.plan().algorithm)) return *std::move(skipped);

  const std::array every_input{&inputs};
  const float* const x = inputs.x(prepared.variant().layout);
  output.poison(kPoison);
  prepared.take_recomputed_outputs();  // those of earlier launches
  const auto start = std::chrono::steady_clock::now();
  prepared.launch(x);
  device.synchronize();
  const double launch_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const std::optional<std::int64_t> recomputed = prepared.take_recomputed_outputs();
  // Before the comparison, whose reference a changed input would change too.
  std::optional<std::string> damage = damage_of(every_input, output, prepared);
  const std::uint64_t first_bits = device.checksum(output.y(), output.y_bytes());
  FillResult result = judge_output(device, prepared, inputs, inputs, output, samples);
  result.recomputed_outputs = recomputed;
  const bool nothing_yet = result.error.nan_outputs == result.error.compared;
  const bool changed_later = changes(device, output, first_bits, nothing_yet ? kLateStart : 0ms);

  // Watched from the second run on: the first may load code, which waits for all streams.
  output.poison(kOtherPoison);
  const auto ordering =
      device.watch_launch([&] { prepared.launch(x); }, output.y(), output.y_bytes(), launch_ms);
  result.repeatable = device.checksum(output.y(), output.y_bytes()) == first_bits;
  if (!*result.repeatable) {
    const FillResult second = judge_output(device, prepared, inputs, inputs, output);
    if (second.verdict == Verdict::failed) fail(result, second.reason, "in a second run: " + second.detail);
  }

  // These explain whatever else was found.
  if (const auto found = disorder(changed_later ? Device::Ordering::outside_stream : ordering))
    overrule(result, reason::unordered_work, *found);
  if (!damage) damage = damage_of(every_input, output, prepared);
  if (damage) overrule(result, reason::wrote_outside, *damage);
  return result;
}

}  // namespace convmish
