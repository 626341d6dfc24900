#include "report/comparison_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/shape_text.hpp"
#include "report/text_table.hpp"

namespace convmish {
namespace {

using Rows = std::vector<const CasePair*>;

std::string name_of(const CaseResult& result) {
  return fmt::format("{}:{} on {}", result.variant, to_string(result.math_class), to_string(result.shape));
}

bool is_slow_regression(const CasePair& pair) {
  return pair.regression && pair.change == TimeChange::slower;
}
/// Without the times: those of a wrong kernel are not looked at.
bool is_verdict_regression(const CasePair& pair) {
  return pair.regression && pair.change != TimeChange::slower;
}

std::string change_text(const CasePair& pair) {
  switch (pair.change) {
    case TimeChange::faster:
      return "faster";
    case TimeChange::tie:
      return "tie";
    case TimeChange::slower:
      return pair.regression ? "slower!" : "slower";
    case TimeChange::not_judged:
      break;
  }
  return {};
}

Colour colour_of(const CasePair& pair) {
  if (pair.regression) return Colour::red;
  if (pair.change == TimeChange::slower) return Colour::yellow;
  return pair.change == TimeChange::faster ? Colour::green : Colour::none;
}

/// Why a case was skipped decides whether that is a regression.
std::string verdict_or_interrupted(const CaseResult& result) {
  return is_interrupted(result) ? result.reason : told_verdict(result);
}

std::string verdict_text(const CasePair& pair) {
  const std::string before = verdict_or_interrupted(*pair.before),
                    after = verdict_or_interrupted(*pair.after);
  return before == after ? before : before + " -> " + after;
}

bool same_shape(const Rows& rows) {
  return std::ranges::all_of(rows,
                             [&](auto* row) { return row->after->shape == rows.front()->after->shape; });
}

std::vector<Column> columns_of(const Rows& rows) {
  constexpr int kAlways = Column::kAlways;
  constexpr auto kLeft = Column::Align::left;
  const CaseResult& first = *rows.front()->after;
  const auto any = [&](auto differs) {
    return std::ranges::any_of(rows, [&](auto* row) { return differs(*row->after); });
  };
  const auto emulated_mark = [](const CasePair& row) {
    return std::string(row.before->emulated || row.after->emulated ? "*" : "");
  };

  std::vector<Column> columns;
  columns.push_back(text_column(
      "variant", kAlways, rows, [](auto& row) { return row.after->variant; }, kLeft));
  columns.push_back(text_column(
      "class", 90, rows, [](auto& row) { return std::string(to_string(row.after->math_class)); }, kLeft));
  if (any([&](auto& result) { return result.layout != first.layout; }))
    columns.push_back(text_column(
        "layout", 50, rows, [](auto& row) { return std::string(to_string(row.after->layout)); }, kLeft));
  if (!same_shape(rows))
    columns.push_back(text_column(
        "shape", 95, rows, [](auto& row) { return to_string(row.after->shape); }, kLeft));
  columns.push_back(text_column("verdict", 80, rows, verdict_text, kLeft));
  columns.push_back(number_column(
      "old ms", 60, 4, rows, [](auto& row) { return shown_median_ms(*row.before); }, emulated_mark));
  columns.push_back(number_column(
      "new ms", 70, 4, rows, [](auto& row) { return shown_median_ms(*row.after); }, emulated_mark));
  columns.push_back(text_column("change", kAlways, rows, [](auto& row) {
    return row.median_change ? fmt::format("{:+.2f}%", 100 * *row.median_change) : std::string();
  }));
  columns.push_back(text_column("p", 40, rows, [](auto& row) {
    if (!row.p) return std::string();
    return *row.p < 0.001 ? "<0.001" : fmt::format("{:.3f}", *row.p);
  }));
  columns.push_back(text_column("outcome", kAlways, rows, change_text, kLeft));
  columns.back().coloured = true;
  return columns;
}

std::string percent(double share) {
  return fmt::format("{:.4g}%", 100 * share);
}

/// What is not judged, by the reason.
std::string not_judged_lines(const ReportComparison& comparison, int width) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const CasePair& pair : comparison.pairs)
    if (!pair.not_judged.empty()) by_reason[pair.not_judged].push_back(name_of(*pair.after));
  std::string out;
  for (const auto& [reason, names] : by_reason)
    out += folded(fmt::format("time not judged: {}: {}", reason, fmt::join(names, ", ")), width, 2);
  return out;
}

std::string regressed_verdict_lines(const ReportComparison& comparison, const TerminalStyle& style) {
  std::string out;
  for (const CasePair& pair : comparison.pairs) {
    if (!is_verdict_regression(pair)) continue;
    const CaseResult& now = *pair.after;
    const std::string word = verdict_or_interrupted(now);
    std::string text =
        folded(fmt::format("{} {}: passed before; {}", word, name_of(now), now.detail), style.width, 2);
    text.replace(0, word.size(), coloured(word, Colour::red, style));
    out += text;
    if (!now.repeat.empty()) out += "  repeat: " + printable(now.repeat) + "\n";
  }
  return out;
}

std::string case_list(std::string_view title, const std::vector<const CaseResult*>& cases, int width) {
  if (cases.empty()) return {};
  std::vector<std::string> names;
  for (const CaseResult* result : cases) names.push_back(name_of(*result));
  return folded(fmt::format("{}: {}", title, fmt::join(names, ", ")), width, 2);
}

std::string table_of(const ReportComparison& comparison, double max_slowdown, const TerminalStyle& style) {
  Rows rows;
  std::vector<RowStyle> styles;
  for (const CasePair& pair : comparison.pairs) {
    rows.push_back(&pair);
    styles.push_back({colour_of(pair)});
  }
  if (rows.empty()) return {};
  std::vector<Column> columns = columns_of(rows);
  const std::vector<std::string> left_out = fit(columns, style.width);
  std::string out;
  if (same_shape(rows)) out = fmt::format("all on {}\n\n", to_string(rows.front()->after->shape));
  out += grid(columns, styles, style);
  if (std::ranges::any_of(rows, [](auto* row) { return is_slow_regression(*row); }))
    out += folded(fmt::format("! slower by more than the {} allowed", percent(max_slowdown)), style.width, 2);
  if (!left_out.empty())
    out += folded(fmt::format("left out at this width: {}", fmt::join(left_out, ", ")), style.width, 2);
  return out;
}

}  // namespace

std::string comparison_table(const ReportComparison& comparison, double max_slowdown,
                             const TerminalStyle& style) {
  std::vector<std::string> parts;
  if (!comparison.differences.empty())
    parts.push_back(
        folded(fmt::format("differs: {}", fmt::join(comparison.differences, "; ")), style.width, 2));
  parts.push_back(table_of(comparison, max_slowdown, style));
  parts.push_back(not_judged_lines(comparison, style.width));
  parts.push_back(regressed_verdict_lines(comparison, style));
  parts.push_back(case_list("only in the old report", comparison.only_before, style.width) +
                  case_list("only in the new report", comparison.only_after, style.width));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

std::string comparison_summary(const ReportComparison& comparison, double max_slowdown,
                               const TerminalStyle& style) {
  std::map<TimeChange, int> counts;
  for (const CasePair& pair : comparison.pairs) ++counts[pair.change];
  const auto too_slow = std::ranges::count_if(comparison.pairs, is_slow_regression);
  const auto no_longer_right = std::ranges::count_if(comparison.pairs, is_verdict_regression);
  std::string line =
      fmt::format("{} faster, {} slower", counts[TimeChange::faster], counts[TimeChange::slower]);
  if (too_slow > 0) line += fmt::format(" ({} by more than {})", too_slow, percent(max_slowdown));
  line += fmt::format(", {} tied, {} not judged", counts[TimeChange::tie], counts[TimeChange::not_judged]);
  if (no_longer_right > 0) line += fmt::format("; {} no longer right", no_longer_right);
  return coloured(std::move(line), comparison.has_regression() ? Colour::red : Colour::green, style);
}

}  // namespace convmish
