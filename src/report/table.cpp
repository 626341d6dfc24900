#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/device_text.hpp"
#include "core/shape_text.hpp"
#include "core/statistics.hpp"
#include "report/number_text.hpp"
#include "report/report.hpp"
#include "report/text_table.hpp"

namespace convmish {
namespace {

// --- What a row is ------------------------------------------------------------------------------------

using Rows = std::vector<const CaseResult*>;

Colour verdict_colour(const CaseResult& result) {
  switch (result.verdict) {
    case Verdict::passed:
      return is_unchecked(result) ? Colour::none : Colour::green;
    case Verdict::mistrusted:
      return Colour::yellow;
    case Verdict::failed:
    case Verdict::crashed:
    case Verdict::timed_out:
      return Colour::red;
    case Verdict::skipped:
      return Colour::none;
  }
  return Colour::none;
}

/// Rows by math class, then fastest first; what has no time comes after, in the order it was run.
Rows sorted_rows(std::span<const CaseResult> cases) {
  Rows rows;
  for (const CaseResult& result : cases)
    if (result.verdict != Verdict::skipped) rows.push_back(&result);
  std::ranges::stable_sort(rows, {}, [](const CaseResult* row) {
    const TimeSummary* time = shown_time(*row);
    return std::tuple(row->math_class, row->verdict != Verdict::passed, time ? time->median : HUGE_VAL);
  });
  return rows;
}

// --- The columns --------------------------------------------------------------------------------------

std::string no_mark(const CaseResult&) {
  return {};
}

std::string worst_ratio(const CaseResult& row) {
  const FillResult* check = deciding_check(row);
  return check ? ratio_text(check->error.worst_ratio) : std::string();
}

/// Of the first fill: that of another scale, `wide` above all, would say nothing beside it.
std::string max_abs_error(const CaseResult& row) {
  const auto first =
      std::ranges::find_if(row.checks, [&](const FillResult& check) { return decides(row, check); });
  return first == row.checks.end() ? std::string() : scientific(first->error.max_abs);
}

std::optional<double> least_ms(const CaseResult& row) {
  const TimeSummary* time = shown_time(row);
  return time ? std::optional(time->min) : std::nullopt;
}

/// Half the interval's width, relative to the median.
std::string interval(const CaseResult& row) {
  const TimeSummary* time = shown_time(row);
  if (!time) return {};
  const std::string mark = time->converged ? "" : "!";
  const auto half_width = relative_half_width(*time);
  return half_width ? mark + "+-" + percent_text(100 * *half_width) : mark;
}

/// `amount` of the direct algorithm a second. Not for an emulated kernel: the rate of an emulator is none.
std::optional<double> rate(const CaseResult& row, double amount) {
  const auto median = shown_median_ms(row);
  if (!median || !(*median > 0) || row.emulated) return std::nullopt;
  return amount / (*median * 1e-3);
}

std::vector<Column> columns_of(const Rows& rows) {
  constexpr int kAlways = Column::kAlways;
  constexpr auto kLeft = Column::Align::left;
  const bool several_layouts =
      std::ranges::any_of(rows, [](const CaseResult* row) { return row->layout != Layout::nchw; });
  const auto mark = [](const CaseResult& row) {
    return std::string(row.emulated ? "*" : "") + (row.noise.empty() ? "" : "~");
  };

  std::vector<Column> columns;
  columns.push_back(text_column(
      "variant", kAlways, rows, [](auto& row) { return row.variant; }, kLeft));
  columns.push_back(text_column(
      "class", 90, rows, [](auto& row) { return std::string(to_string(row.math_class)); }, kLeft));
  if (several_layouts)
    columns.push_back(text_column(
        "layout", 65, rows, [](auto& row) { return std::string(to_string(row.layout)); }, kLeft));
  columns.push_back(text_column("verdict", kAlways, rows, told_verdict, kLeft));
  columns.back().coloured = true;
  columns.push_back(text_column("ratio", 80, rows, worst_ratio));
  columns.push_back(text_column("max abs", 60, rows, max_abs_error));
  columns.push_back(number_column("ms", kAlways, 4, rows, shown_median_ms, mark));
  columns.push_back(text_column("95% CI", 50, rows, interval));
  columns.push_back(number_column("min ms", 20, 4, rows, least_ms, mark));
  columns.push_back(number_column(
      "TFLOP/s", 55, 3, rows,
      [](auto& row) -> std::optional<double> {
        const auto flops = rate(row, row.shape.flops());
        return flops ? std::optional(*flops * 1e-12) : std::nullopt;
      },
      no_mark));
  columns.push_back(number_column(
      "GB/s", 30, 3, rows,
      [](auto& row) -> std::optional<double> {
        const auto bytes = rate(row, row.shape.least_bytes());
        return bytes ? std::optional(*bytes * 1e-9) : std::nullopt;
      },
      no_mark));
  columns.push_back(text_column("floor", 70, rows, [](auto& row) {
    return row.percent_of_floor && shown_time(row) ? percent_text(*row.percent_of_floor) : std::string();
  }));
  columns.push_back(text_column(
      "bound by", 40, rows, [](auto& row) { return shown_time(row) ? row.binding_ceiling : std::string(); },
      kLeft));
  columns.push_back(text_column("speed-up", 85, rows, [](auto& row) {
    return row.speedup && shown_time(row) ? fmt::format("{:.2f}x", *row.speedup) : std::string();
  }));
  columns.push_back(number_column(
      "prepare ms", 15, 3, rows, [](auto& row) { return row.prepare_ms; }, no_mark));
  columns.push_back(text_column("n", 10, rows, [](auto& row) {
    const TimeSummary* time = shown_time(row);
    return time ? std::to_string(time->samples.size()) : std::string();
  }));
  std::erase_if(columns, [](const Column& column) { return column.need != kAlways && column.empty(); });
  return columns;
}

std::vector<RowStyle> row_styles(const Rows& rows) {
  std::vector<RowStyle> styles;
  for (std::size_t i = 0; i < rows.size(); ++i)
    styles.push_back({verdict_colour(*rows[i]), i > 0 && rows[i]->math_class != rows[i - 1]->math_class});
  return styles;
}

// --- Around the table ---------------------------------------------------------------------------------

std::string header(std::span<const CaseResult> cases, const DeviceInfo& device, std::string_view baseline,
                   int width) {
  const Shape& shape = cases.front().shape;
  std::string out =
      folded({fmt::format("{} ({})", device.name, to_string(device)), to_string(shape),
              scaled(shape.flops(), "FLOP"), scaled(shape.least_bytes(), "B") + " least traffic",
              fmt::format("{} output{}", shape.y_elements(), shape.y_elements() == 1 ? "" : "s")},
             kGap, width, 2);

  // The cases of a shape share their fills and seed, unless they come from several runs: then each fill once.
  std::vector<std::string> fills;
  for (const CaseResult& result : cases)
    for (const Fill fill : result.fills)
      if (std::string text(to_string(fill)); std::ranges::find(fills, text) == fills.end())
        fills.push_back(text);
  std::vector<std::string> inputs;
  if (!fills.empty())  // else the tensors were given
    inputs = {fmt::format("seed {}", cases.front().seed), fmt::format("fills {}", fmt::join(fills, " "))};
  const auto timed = std::ranges::find_if(cases, [](auto& result) { return shown_time(result) != nullptr; });
  if (timed != cases.end() && timed->time_ms->cache)
    inputs.push_back(fmt::format("cache {}", to_string(*timed->time_ms->cache)));
  if (timed != cases.end() && timed->time_ms->duty_cycle)
    inputs.push_back(fmt::format("duty cycle {:g}%", 100 * *timed->time_ms->duty_cycle));
  const bool has_speedup =
      std::ranges::any_of(cases, [](auto& result) { return result.speedup.has_value(); });
  if (has_speedup && !baseline.empty())
    inputs.push_back(fmt::format("speed-up over {} of the same class", baseline));
  return inputs.empty() ? out : out + folded(inputs, kGap, width, 2);
}

std::string name_of(const CaseResult& result) {
  return fmt::format("{}:{}", result.variant, to_string(result.math_class));  // as --variant takes it
}

std::string explanation(const CaseResult& result) {
  const std::string& text = result.detail.empty() ? result.reason : result.detail;
  return text.empty() ? "no reason given" : text;
}

std::string not_passed_lines(std::span<const CaseResult> cases, const TerminalStyle& style) {
  std::string out;
  for (const CaseResult& result : cases) {
    if (result.verdict == Verdict::passed || result.verdict == Verdict::skipped) continue;
    const std::string verdict(to_string(result.verdict));
    std::string text =
        folded(fmt::format("{} {}: {}", verdict, name_of(result), explanation(result)), style.width, 2);
    text.replace(0, verdict.size(), coloured(verdict, verdict_colour(result), style));
    out += text;
    if (!result.repeat.empty())
      out += "  repeat: " + printable(result.repeat) + "\n";  // never folded: it is to be copied
  }
  return out;
}

std::string skipped_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases)
    if (result.verdict == Verdict::skipped)
      out += folded(fmt::format("skipped {}: {}", name_of(result), explanation(result)), width, 2);
  return out;
}

/// What a reader of the times must know.
std::string timing_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases) {
    if (shown_time(result) && !result.noise.empty())
      out += folded(fmt::format("noisy {}: {}; measured twice", name_of(result), result.noise), width, 2);
    if (const TimeSummary* time = shown_time(result); time && time->host_gaps > 0)
      out += folded(
          fmt::format("{}: in {} of {} samples the device may have waited for the host, which is slow to "
                      "enqueue a launch; their times hold the wait",
                      name_of(result), time->host_gaps, time->samples.size()),
          width, 2);
    for (const std::string& remark : result.remarks)
      out += folded(fmt::format("{}: {}", name_of(result), remark), width, 2);
  }
  return out;
}

/// Which configuration a case took, where it was not left to the variant's rule.
std::string configuration_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases) {
    const auto& choice = result.configuration;
    if (!choice || choice->by == ChosenBy::rule) continue;
    std::string line = fmt::format("{}: configuration {}", name_of(result), choice->name);
    if (choice->by == ChosenBy::table) line += ", of the tuning table";
    if (choice->by == ChosenBy::tuning) {
      line += fmt::format(", fastest of {} (", choice->timed.size());
      for (const auto& timed : choice->timed)
        line += fmt::format("{}{} {:.4g} ms", &timed == &choice->timed.front() ? "" : ", ", timed.name,
                            timed.median_ms);
      line += ")";
    }
    out += folded(line, width, 2);
  }
  return out;
}

/// What a verdict does not rest on, although it was asked for.
std::string unjudged_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases)
    for (const FillResult& check : result.checks)
      if (result.verdict == Verdict::passed && check.fill && !decides(result, check))
        out += folded(
            fmt::format("{}: not judged on {}: {}", name_of(result), to_string(*check.fill), check.detail),
            width, 2);
  return out;
}

/// What was not computed in the way that the time is of.
std::string recomputed_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases) {
    std::string fills;
    for (const FillResult& check : result.checks)
      if (check.fill && check.recomputed_outputs.value_or(0) > 0)
        fills += fmt::format("{}{} of {} on {}", fills.empty() ? "" : ", ", *check.recomputed_outputs,
                             check.error.compared, to_string(*check.fill));
    if (!fills.empty())
      out += folded(
          fmt::format("{}: recomputed outputs that its fast way cannot serve: {}", name_of(result), fills),
          width, 2);
  }
  return out;
}

/// What was asked for beside the strict verdict: a case and a rule a line.
std::string tolerance_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases)
    for (auto first = result.tolerances.begin(); first != result.tolerances.end();) {
      const auto end = std::find_if(first, result.tolerances.end(),
                                    [&](const ToleranceResult& other) { return other.name != first->name; });
      std::string line = fmt::format("{} by {}:", name_of(result), first->name);
      for (auto told = first; told != end; ++told) {
        line += fmt::format("{} {} on {} against {} (", told == first ? "" : ",", to_string(told->verdict),
                            to_string(told->fill), told->against);
        if (told->violations > 0)
          line += fmt::format("{} of {} outputs beyond, ", told->violations, told->compared);
        line += fmt::format("max abs {})", scientific(told->max_abs));
      }
      out += folded(line, width, 2);
      first = end;
    }
  return out;
}

/// The activation by itself, where the fill `delta` was checked.
std::string activation_lines(std::span<const CaseResult> cases, int width) {
  std::string out;
  for (const CaseResult& result : cases)
    for (const FillResult& check : result.checks) {
      const ErrorSummary& error = check.error;
      if (!error.activation_ulp || !error.activation_ulp_z) continue;
      out += folded(fmt::format("activation of {}: at most {:.2f} ULP off, at z = {:.9g}; {}",
                                name_of(result), *error.activation_ulp, *error.activation_ulp_z,
                                error.first_nonfinite_z
                                    ? fmt::format("not finite from z = {:.9g} on", *error.first_nonfinite_z)
                                    : "finite everywhere"),
                    width, 2);
    }
  return out;
}

std::string footnotes(const Rows& rows, const std::vector<std::string>& left_out, int width) {
  std::string out;
  if (std::ranges::any_of(rows, [](auto* row) { return row->emulated && shown_time(*row); }))
    out += folded("* emulated: a GPU kernel run on the CPU, for its results; its time says nothing of a GPU",
                  width, 2);
  if (std::ranges::any_of(rows, [](auto* row) { return interval(*row).starts_with('!'); }))
    out += folded(
        "! not converged: stopped by the time limit or the count of samples, with an interval wider than "
        "asked "
        "for, or with too few samples for one",
        width, 2);
  if (std::ranges::any_of(rows, [](auto* row) { return shown_time(*row) && !row->noise.empty(); }))
    out += folded("~ noisy: measured under clocks that were not steady", width, 2);
  if (!left_out.empty())
    out += folded(fmt::format("left out at this width: {}", fmt::join(left_out, ", ")), width, 2);
  return out;
}

}  // namespace

std::string shape_table(std::span<const CaseResult> cases, const DeviceInfo& device,
                        std::string_view baseline, const TerminalStyle& style) {
  if (cases.empty()) return {};
  std::string out = header(cases, device, baseline, style.width);
  const Rows rows = sorted_rows(cases);
  if (!rows.empty()) {
    std::vector<Column> columns = columns_of(rows);
    const std::vector<std::string> left_out = fit(columns, style.width);
    out += "\n" + grid(columns, row_styles(rows), style);
    if (const std::string notes = footnotes(rows, left_out, style.width); !notes.empty()) out += "\n" + notes;
  }
  if (const std::string lines = not_passed_lines(cases, style); !lines.empty()) out += "\n" + lines;
  for (const std::string& lines : {timing_lines(cases, style.width), configuration_lines(cases, style.width),
                                   unjudged_lines(cases, style.width), recomputed_lines(cases, style.width),
                                   tolerance_lines(cases, style.width), activation_lines(cases, style.width),
                                   skipped_lines(cases, style.width)})
    if (!lines.empty()) out += "\n" + lines;
  return out;
}

std::string table_legend(std::span<const CaseResult> cases, const TerminalStyle& style) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kLines{{
      {"ratio", "ratio    largest error / allowed error over all fills; right where <= 1"},
      {"max abs", "max abs  largest |y - float64 reference|, first fill that applies"},
      {"ms", "ms       median of the launches; 95% CI: half the interval of the median, relative to it"},
      {"TFLOP/s", "TFLOP/s  2 x multiply-adds of the direct algorithm / ms;  GB/s  every tensor once / ms"},
      {"prepare ms",
       "prepare  plan search and repacking of weights, once for a shape and filter; no part of ms"},
      {"floor",
       "floor    least time that the device's ceilings allow / ms; bound by: the ceiling that sets it"},
  }};
  const std::vector<Column> columns = columns_of(sorted_rows(cases));
  std::string out;
  for (const auto& [title, line] : kLines)
    if (std::ranges::any_of(columns,
                            [&](const Column& column) { return column.title == title && !column.empty(); }))
      out += folded(line, style.width, 9);
  return out;
}

std::string summary_line(std::span<const CaseResult> cases, const TerminalStyle& style) {
  std::map<Verdict, int> counts;
  int not_checked = 0;
  for (const CaseResult& result : cases) {
    if (is_unchecked(result))
      ++not_checked;
    else
      ++counts[result.verdict];
  }
  std::string line = fmt::format("{} passed, {} skipped, {} failed", counts[Verdict::passed],
                                 counts[Verdict::skipped], counts[Verdict::failed]);
  if (not_checked > 0) line += fmt::format(", {} not checked", not_checked);
  if (const int count = counts[Verdict::mistrusted]) line += fmt::format(", {} mistrusted", count);
  if (const int count = counts[Verdict::crashed]) line += fmt::format(", {} crashed", count);
  if (const int count = counts[Verdict::timed_out]) line += fmt::format(", {} timed out", count);

  const bool wrong = counts[Verdict::failed] + counts[Verdict::crashed] + counts[Verdict::timed_out] > 0;
  const Colour colour = wrong                             ? Colour::red
                        : counts[Verdict::mistrusted] > 0 ? Colour::yellow
                        : counts[Verdict::passed] > 0     ? Colour::green
                                                          : Colour::none;
  return coloured(std::move(line), colour, style);
}

}  // namespace convmish
