#include "run/runner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/device_text.hpp"
#include "core/error.hpp"
#include "core/shape_text.hpp"
#include "run/case_verdict.hpp"
#include "run/cross_check.hpp"
#include "run/prepared.hpp"
#include "run/reasons.hpp"
#include "run/timed_check.hpp"
#include "run/timing.hpp"
#include "run/tolerances.hpp"
#include "run/verify.hpp"

namespace convmish {
namespace {

bool still_runs(const CaseResult& result) {
  return result.verdict == Verdict::passed || result.verdict == Verdict::failed ||
         result.verdict == Verdict::mistrusted;
}

/// A case that has failed is not skipped for what the next step lacked.
void skip(CaseResult& result, std::string_view reason, std::string detail) {
  if (result.verdict == Verdict::failed)
    result.remarks.push_back("not checked further: " + detail);
  else
    set_verdict(result, Verdict::skipped, reason, std::move(detail));
}

/// Runs `step` of a variant and turns what it throws into that variant's verdict.
template <class Step>
void guarded(Device& device, CaseResult& result, Step step) {
  try {
    step();
    return;
  } catch (const EnvironmentError&) {
    throw;  // says nothing of the variant
  } catch (const Unsupported& error) {
    skip(result, reason::unsupported, error.what());
  } catch (const OutOfMemory& error) {
    skip(result, reason::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    skip(result, reason::out_of_memory, "the host's memory does not suffice");
  } catch (const DeviceError& error) {
    set_verdict(result, Verdict::crashed, reason::device_error, error.what());
  } catch (const std::exception& error) {
    set_verdict(result, Verdict::crashed, reason::exception, error.what());
  }
  device.synchronize();  // a sticky error is thrown from here: the device is lost to this process
}

/// The same for a step of the timing. A case that was checked keeps its verdict where the step could not be
/// made, for want of memory say, and is told as not timed.
template <class Step>
void guarded_timing(Device& device, CaseResult& result, Step step) {
  guarded(device, result, step);
  if (result.verdict == Verdict::crashed) result.detail = "when timed: " + result.detail;
  if (result.verdict != Verdict::skipped || result.checks.empty()) return;
  result.remarks.push_back("not timed: " + result.detail);
  result.time_ms.reset();  // where it was the check of the time that could not be made
  result.clocks.reset();
  set_verdict(result, Verdict::passed, {}, {});
}

using Purpose = PreparedVariant::Purpose;

class ShapeRun {
 public:
  ShapeRun(Device& device, const std::vector<const Variant*>& variants, const Shape& shape,
           const RunnerOptions& options, const RunObserver& observer)
      : device_(device), variants_(variants), shape_(shape), options_(options), observer_(observer) {
    for (const Variant* variant : variants) {
      results_.push_back(new_case(*variant, shape, options.run, device.info()));
      if (const auto reason = why_unavailable(*variant, device.info()))
        set_verdict(results_.back(), Verdict::skipped, reason::unavailable, *reason);
    }
  }

  std::vector<CaseResult> run() {
    choose_configurations();
    if (options_.run.check) {
      for (const Fill fill : options_.run.fills) {
        check_fill(fill);
        if (observer_.so_far) observer_.so_far(unfinished_results());
      }
      for (CaseResult& result : results_) settle(result);
    }
    if (asks_for(Tolerance::Kind::kernelbench)) check_kernelbench();
    if (options_.run.time) time();
    return std::move(results_);
  }

 private:
  void tell(const Variant& variant, const Step& step) {
    if (observer_.step) observer_.step(variant, step);
  }

  std::vector<CaseResult> unfinished_results() const {
    std::vector<CaseResult> results = results_;
    for (CaseResult& result : results)
      if (result.verdict == Verdict::passed)
        set_verdict(result, Verdict::skipped, reason::interrupted, "the run ended before this case did");
    return results;
  }

  template <class Step>
  void for_each_running(Step step) {
    for (std::size_t i = 0; i < variants_.size(); ++i)
      if (still_runs(results_[i])) guarded(device_, results_[i], [&] { step(*variants_[i], results_[i]); });
  }

  void choose_configurations() {
    if (!options_.configurations.tune)
      return for_each_running([&](const Variant& variant, CaseResult& result) {
        adopt_choice(result, choose_configuration(variant, shape_, device_.info(), options_.configurations));
      });
    std::optional<Inputs> inputs;
    std::optional<SharedOutput> output;
    for_each_running([&](const Variant& variant, CaseResult& result) {
      if (variant.configurations.empty()) return;
      const auto tell_tune = [&] { tell(variant, {Step::Kind::tune}); };
      tell_tune();
      if (!inputs) inputs.emplace(device_, options_.run.fills.front(), options_.run.seed, shape_);
      if (!output) output.emplace(device_, shape_);
      try {
        adopt_choice(result, tune(device_, variant, *inputs, *output, options_.run.timing, tell_tune));
      } catch (...) {
        inputs.reset();
        output.reset();
        throw;
      }
    });
  }

  void adopt_choice(CaseResult& result, std::optional<ConfigurationChoice> choice) {
    result.configuration = std::move(choice);
    result.repeat = repeat_command(result, options_.run, device_.info());
  }

  void check_fill(Fill fill) {
    Shape shape = shape_;
    shape.n = check_batch(shape_, fill == options_.run.fills.front());
    std::optional<Inputs> inputs;
    std::optional<SharedOutput> output;
    // The reference is the same for all variants: the first comparison's is looked at.
    std::vector<ReferencePoint> samples = sample_outputs(shape, options_.run.seed);
    for_each_running([&](const Variant& variant, CaseResult& result) {
      tell(variant, {Step::Kind::check, fill});
      if (!inputs) inputs.emplace(device_, fill, options_.run.seed, shape);
      if (!output) output.emplace(device_, shape);
      const auto renew = [&] {  // what one variant damaged is not to be blamed on the next
        inputs.reset();
        output.reset();
      };
      FillResult check;
      try {
        check = check_variant(variant, result, *inputs, *output, samples);
      } catch (...) {
        renew();
        throw;
      }
      if (check.reason == reason::wrote_outside) {
        renew();
      } else if (!samples.empty() && check.verdict != Verdict::skipped) {
        cross_check_reference(inputs->spec(), samples);
        samples.clear();
      }
      adopt(result, std::move(check));
    });
  }

  bool asks_for(Tolerance::Kind kind) const {
    return std::ranges::find(options_.run.tolerances, kind, &Tolerance::kind) !=
           options_.run.tolerances.end();
  }

  void check_kernelbench() {
    Shape shape = shape_;
    shape.n = check_batch(shape_, /*first=*/false);
    std::optional<SharedOutput> output;
    for_each_running([&](const Variant& variant, CaseResult& result) {
      tell(variant, {Step::Kind::check_tolerance});
      try {
        Inputs inputs(device_, Fill::kernelbench, options_.run.seed, shape);  // anew: their x is redrawn
        if (!output) output.emplace(device_, shape);
        PreparedVariant prepared(device_, variant, inputs, *output, Purpose::check_only,
                                 name_of(result.configuration));
        for (ToleranceResult& told : apply_kernelbench(device_, prepared, inputs, *output))
          result.tolerances.push_back(std::move(told));
      } catch (const OutOfMemory& error) {  // the verdict does not hang on it
        result.remarks.push_back(std::string("kernelbench's tolerance was not tried: ") + error.what());
      }
    });
  }

  FillResult check_variant(const Variant& variant, CaseResult& result, Inputs& inputs, SharedOutput& output,
                           std::span<ReferencePoint> samples) {
    // The whole batch is what will be timed: that very plan is then checked.
    const auto purpose =
        options_.run.time && inputs.spec().shape == shape_ ? Purpose::timing : Purpose::check_only;
    output.release_workspace();  // one of the variant's own size: the guard zone begins where it ends
    PreparedVariant prepared(device_, variant, inputs, output, purpose, name_of(result.configuration));
    if (!result.prepare_ms) describe_plan(prepared, result);  // of the first fill: all of its images
    FillResult check = verify(device_, prepared, inputs, output, samples);
    for (const Tolerance& tolerance : options_.run.tolerances)
      if (tolerance.kind == Tolerance::Kind::allclose)
        result.tolerances.push_back(apply_allclose(device_, prepared, inputs, output, tolerance));
    return check;
  }

  void time() {
    Inputs inputs(device_, options_.run.fills.front(), options_.run.seed, shape_);
    Inputs other_inputs(device_, options_.run.fills.front(), options_.run.seed + 1, shape_);
    const InputSets input_sets{&inputs, &other_inputs};
    TimedCheck check(device_, input_sets);
    std::optional<SharedOutput> output;
    std::vector<std::unique_ptr<PreparedVariant>> prepared;
    std::vector<CaseResult*> timed;
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      const Variant& variant = *variants_[i];
      CaseResult& result = results_[i];
      if (result.verdict != Verdict::passed) continue;  // the time of a wrong result means nothing
      guarded_timing(device_, result, [&] {
        tell(variant, {Step::Kind::prepare});
        if (!output) output.emplace(device_, shape_);
        auto one = std::make_unique<PreparedVariant>(device_, variant, inputs, *output, Purpose::timing,
                                                     name_of(result.configuration));
        other_inputs.x(variant.layout);
        if (!result.prepare_ms) describe_plan(*one, result);
        if (options_.run.check) {
          const FillResult admitted = check.admit(*one, *output);
          if (admitted.verdict == Verdict::failed)
            return set_verdict(result, Verdict::failed, admitted.reason,
                               "on the inputs of the timing: " + admitted.detail);
        }
        prepared.push_back(std::move(one));
        timed.push_back(&result);
      });
    }

    std::vector<PreparedVariant*> running;
    for (const auto& one : prepared) running.push_back(one.get());
    const TimingObserver observer{
        .before_launch = [&](std::size_t i) { tell(running[i]->variant(), {Step::Kind::time}); },
        .after_launch =
            [&](std::size_t i, std::size_t set, bool last) {
              if (options_.run.check) check.after_launch(i, set, last);
            },
        .after_error = [&] { check.restore(); }};
    const auto timings =
        time_variants(device_, running, input_sets, options_.run.timing, options_.run.seed, observer);
    for (std::size_t i = 0; i < timed.size(); ++i) adopt_timing(*timed[i], timings[i]);
    if (options_.run.check) check_after_timing(running, timed, check);
    tell_distances(running, timed);
  }

  void adopt_timing(CaseResult& result, const Timing& timing) {
    if (timing.error) guarded_timing(device_, result, [&] { std::rethrow_exception(timing.error); });
    if (!timing.time) return;
    result.time_ms = timing.time;
    result.clocks = timing.clocks;
    result.noise = timing.noise;
    result.remeasured = timing.remeasured;
  }

  void describe_plan(const PreparedVariant& prepared, CaseResult& result) {
    const Plan& plan = prepared.plan();
    result.prepare_ms = prepared.prepare_ms();
    result.workspace_bytes = static_cast<std::int64_t>(plan.workspace_bytes);
    result.plan_bytes = prepared.plan_bytes();
    result.launch = plan.geometry;
    result.algorithm = plan.algorithm;
    result.note = note_with_choice(plan.note, result.configuration);
  }

  /// What was timed must be what was verified.
  void check_after_timing(const std::vector<PreparedVariant*>& running, const std::vector<CaseResult*>& timed,
                          TimedCheck& check) {
    for (const TimedCheck::Change change : TimedCheck::kChanges) {
      check.change_x(change);
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (timed[i]->verdict != Verdict::passed || !timed[i]->time_ms) continue;
        guarded_timing(device_, *timed[i], [&] {
          tell(running[i]->variant(), {Step::Kind::check_after_timing});
          if (const auto found = check.verdict(i))
            set_verdict(*timed[i], Verdict::failed, reason::wrong_when_timed, *found);
        });
      }
    }
  }

  /// A time that the device cannot reach says that the variant does not do what it declares.
  void refuse_impossible(const Variant& variant, const Ceilings& data_sheet, CaseResult& result) {
    const double median = result.time_ms->median;
    const auto least = least_possible(shape_, variant.pipe, variant.products, result.algorithm, data_sheet,
                                      device_.info().l2_bytes);
    if (result.verdict != Verdict::passed || !least || !(median < least->ms)) return;
    set_verdict(
        result, Verdict::failed, reason::impossible_time,
        fmt::format("its median of {:.4g} ms is impossible: by the data sheet of {}, with a margin for "
                    "its clocks, the work that is declared takes at least {:.4g} ms ({})",
                    median, device_.info().name, least->ms, least->binding_ceiling));
  }

  void tell_distances(const std::vector<PreparedVariant*>& running, const std::vector<CaseResult*>& timed) {
    const DeviceCeilings known = options_.ceilings.value_or(DeviceCeilings());
    const Ceilings ceilings = known.best();
    for (std::size_t i = 0; i < timed.size(); ++i) {
      CaseResult& result = *timed[i];
      if (!result.time_ms) continue;
      const Variant& variant = running[i]->variant();
      if (const auto floor = floor_of(shape_, variant.pipe, variant.products, result.algorithm, ceilings)) {
        result.floor_ms = floor->ms;
        result.binding_ceiling = floor->binding_ceiling;
        result.percent_of_floor = 100 * floor->ms / result.time_ms->median;
      }
      refuse_impossible(variant, known.data_sheet, result);
    }
    for (CaseResult* result : timed)
      for (const CaseResult* other : timed)
        if (result->time_ms && other->time_ms && other->verdict == Verdict::passed &&
            other->variant == options_.baseline && other->math_class == result->math_class)
          result->speedup = other->time_ms->median / result->time_ms->median;
  }

  Device& device_;
  const std::vector<const Variant*>& variants_;
  Shape shape_;
  const RunnerOptions& options_;
  const RunObserver& observer_;
  std::vector<CaseResult> results_;
};

}  // namespace

std::vector<CaseResult> run_shape(Device& device, const std::vector<const Variant*>& variants,
                                  const Shape& shape, const RunnerOptions& options,
                                  const RunObserver& observer) {
  return ShapeRun(device, variants, shape, options, observer).run();
}

CaseResult new_case(const Variant& variant, const Shape& shape, const RunOptions& run,
                    const DeviceInfo& device) {
  CaseResult result{.variant = variant.name,
                    .math_class = variant.math,
                    .layout = variant.layout,
                    .device = variant.device,
                    .emulated = variant.emulated,
                    .shape = shape,
                    .seed = run.seed,
                    .fills = run.fills};
  result.repeat = repeat_command(result, run, device);
  return result;
}

std::string repeat_command(const CaseResult& result, const RunOptions& options, const DeviceInfo& device) {
  std::string command =
      fmt::format("convmish-bench --variant {}:{} --shape {} --device {} --seed {}", result.variant,
                  to_string(result.math_class), to_string(result.shape), to_string(device), result.seed);
  std::string fills;
  for (const Fill fill : result.fills) fills += (fills.empty() ? "" : ",") + std::string(to_string(fill));
  command += " --fill " + fills;
  for (const Tolerance& tolerance : options.tolerances) command += " --tolerance " + to_string(tolerance);
  if (result.configuration) command += " --configuration " + result.configuration->name;
  if (!options.check) command += " --no-check";
  if (!options.time) command += " --no-time";

  const RunOptions defaults;
  const TimingOptions& timing = options.timing;
  const auto add = [&command](const char* option, const auto& value) {
    command += fmt::format(" --{} {}", option, value);
  };
  if (options.timeout_s != defaults.timeout_s) add("timeout", options.timeout_s);
  if (timing.min_time_s) add("min-time", *timing.min_time_s);
  if (timing.max_time_s) add("max-time", *timing.max_time_s);
  if (timing.ci_half_width != defaults.timing.ci_half_width) add("ci-half-width", timing.ci_half_width);
  if (timing.samples) add("samples", *timing.samples);
  if (timing.cache) add("cache", to_string(*timing.cache));
  if (timing.duty_cycle && timing.duty_cycle != defaults.timing.duty_cycle)
    add("duty-cycle", *timing.duty_cycle);
  return command;
}

}  // namespace convmish
