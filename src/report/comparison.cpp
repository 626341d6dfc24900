#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/rank_test.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

constexpr double kLevel = 0.05;

std::vector<std::string> differences_of(const Environment& before, const Environment& after) {
  constexpr std::pair<std::string_view, std::string Environment::*> kFields[] = {
      {"driver", &Environment::driver},
      {"CUDA runtime", &Environment::cuda_runtime},
      {"cuDNN", &Environment::cudnn},
      {"oneDNN", &Environment::onednn},
      {"host CPU", &Environment::host_cpu},
      {"compiler", &Environment::compiler},
      {"CUDA compiler", &Environment::cuda_compiler},
      {"build", &Environment::build_type},
      {"version", &Environment::tool_version},
      {"revision", &Environment::git_revision},
  };
  const auto told = [](const std::string& text) { return text.empty() ? "none" : text; };
  std::vector<std::string> differences;
  for (const auto& [name, field] : kFields)
    if (before.*field != after.*field)
      differences.push_back(fmt::format("{} {}, now {}", name, told(before.*field), told(after.*field)));
  return differences;
}

/// Of a case that passed before. Whatever else is skipped is so for a reason that its variant declares.
bool is_no_longer_right(const CaseResult& now) {
  return now.verdict != Verdict::passed && (now.verdict != Verdict::skipped || is_interrupted(now));
}

/// Why the times of a pair cannot be told apart, whatever they are; empty if they can.
std::string why_incomparable(const CasePair& pair) {
  if (pair.before->emulated || pair.after->emulated) return "emulated";
  const TimeSummary *const before = shown_time(*pair.before), *const after = shown_time(*pair.after);
  if (!before) return "no time in the old report";
  if (!after) return "no time in the new report";
  if (!pair.before->noise.empty()) return "noisy in the old report";
  if (!pair.after->noise.empty()) return "noisy in the new report";
  if (before->samples.empty() || after->samples.empty()) return "no samples";
  if (!(before->median > 0)) return "too short for the clock in the old report";
  if (before->cache && after->cache && before->cache != after->cache)
    return fmt::format("timed with a {} cache, now with a {} one", to_string(*before->cache),
                       to_string(*after->cache));
  if (const double then = before->duty_cycle.value_or(1), now = after->duty_cycle.value_or(1); then != now)
    return fmt::format("timed at a duty cycle of {:g}%, now at {:g}%", 100 * then, 100 * now);
  return {};
}

const std::vector<double>& samples_of(const CaseResult* result) {
  return shown_time(*result)->samples;
}

/// Those of the pairs whose counts of samples leave room for a significant difference.
std::vector<CasePair*> judgeable(const std::vector<CasePair*>& timed) {
  std::vector<CasePair*> pairs;
  for (CasePair* const pair : timed) {
    const double least = least_p(samples_of(pair->before).size(), samples_of(pair->after).size());
    if (least * static_cast<double>(timed.size()) <= kLevel)
      pairs.push_back(pair);
    else
      pair->not_judged = "too few samples";
  }
  return pairs;
}

void judge_times(std::vector<CasePair>& all, double max_slowdown) {
  std::vector<CasePair*> timed;
  for (CasePair& pair : all) {
    pair.not_judged = why_incomparable(pair);
    if (!pair.not_judged.empty()) continue;
    pair.median_change = shown_time(*pair.after)->median / shown_time(*pair.before)->median - 1;
    timed.push_back(&pair);
  }
  const std::vector<CasePair*> pairs = judgeable(timed);
  std::vector<RankTest> tests;
  std::vector<double> p;
  for (const CasePair* pair : pairs) {
    tests.push_back(mann_whitney(samples_of(pair->before), samples_of(pair->after)));
    p.push_back(tests.back().p);
  }
  const std::vector<double> adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CasePair& pair = *pairs[i];
    pair.p = adjusted[i];
    // Ranks and medians can point in different directions: then neither is told.
    const bool significant = adjusted[i] <= kLevel;
    if (significant && tests[i].b_is_less && *pair.median_change < 0)
      pair.change = TimeChange::faster;
    else if (significant && !tests[i].b_is_less && *pair.median_change > 0)
      pair.change = TimeChange::slower;
    else
      pair.change = TimeChange::tie;
    pair.regression |= pair.change == TimeChange::slower && *pair.median_change > max_slowdown;
  }
}

}  // namespace

CaseIndex::CaseIndex(const NamedReport& named) {
  for (const CaseResult& result : named.report->cases)
    if (!cases_.emplace(key_of(result), &result).second)
      throw InputError(fmt::format("{}: {}:{} ({}, {}) on {} stands twice; want each case once", named.name,
                                   result.variant, to_string(result.math_class), to_string(result.layout),
                                   to_string(result.device), to_string(result.shape)));
}

const CaseResult* CaseIndex::find(const CaseResult& result) const {
  const auto found = cases_.find(key_of(result));
  return found == cases_.end() ? nullptr : found->second;
}

CaseIndex::Key CaseIndex::key_of(const CaseResult& result) {
  const Shape& s = result.shape;
  return {result.variant, result.math_class, result.layout, result.device, {s.n, s.c, s.h, s.w, s.k}};
}

bool ReportComparison::has_regression() const {
  return std::ranges::any_of(pairs, &CasePair::regression);
}

ReportComparison compare_reports(const NamedReport& before, const NamedReport& after, double max_slowdown) {
  ReportComparison comparison{.differences =
                                  differences_of(before.report->environment, after.report->environment)};
  const CaseIndex old_cases(before), new_cases(after);
  for (const CaseResult& result : after.report->cases) {
    const CaseResult* const old = old_cases.find(result);
    if (!old) {
      comparison.only_after.push_back(&result);
      continue;
    }
    CasePair pair{.before = old, .after = &result};
    pair.regression = old->verdict == Verdict::passed && is_no_longer_right(result);
    comparison.pairs.push_back(std::move(pair));
  }
  for (const CaseResult& result : before.report->cases)
    if (!new_cases.find(result)) comparison.only_before.push_back(&result);
  judge_times(comparison.pairs, max_slowdown);
  return comparison;
}

}  // namespace convmish
