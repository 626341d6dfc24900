#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace convmish {
namespace {

int total_width(const std::vector<Column>& columns) {
  int total = 0;
  for (const Column& column : columns) total += column.width() + static_cast<int>(kGap.size());
  return total - static_cast<int>(kGap.size());
}

/// A line of the table. `colour` is that of the cells of coloured columns.
std::string line_of(const std::vector<Column>& columns, const std::function<std::string(const Column&)>& cell,
                    Colour colour, const TerminalStyle& style) {
  std::string line;
  for (const Column& column : columns) {
    std::string text = cell(column);
    const std::string pad(static_cast<std::size_t>(column.width() - display_width(text)), ' ');
    if (column.coloured) text = coloured(std::move(text), colour, style);
    if (!line.empty()) line += kGap;
    line += column.align == Column::Align::right ? pad + text : text + pad;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string coloured(std::string text, Colour colour, const TerminalStyle& style) {
  if (!style.colour || colour == Colour::none) return text;
  const int code = colour == Colour::green ? 32 : colour == Colour::yellow ? 33 : 31;
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

int display_width(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string folded(const std::vector<std::string>& items, std::string_view gap, int width, int indent) {
  std::string out;
  int column = 0;
  for (const std::string& raw : items) {
    const std::string item = printable(raw);
    if (column > 0 && column + display_width(gap) + display_width(item) > width) {
      out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (column > 0) {
      out += gap;
      column += display_width(gap);
    }
    out += item;
    column += display_width(item);
  }
  return out + "\n";
}

std::string folded(std::string_view text, int width, int indent) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return folded(words, " ", width, indent);
}

int Column::width() const {
  int widest = display_width(title);
  for (const std::string& cell : cells) widest = std::max(widest, display_width(cell));
  return widest;
}

bool Column::empty() const {
  return std::ranges::all_of(cells, [](const std::string& cell) { return cell == kNotMeasured; });
}

int decimals_for(double smallest, int digits) {
  constexpr int kMostDecimals = 6;
  if (!std::isfinite(smallest)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(smallest))), 0, kMostDecimals);
}

std::vector<std::string> fit(std::vector<Column>& columns, int width) {
  const std::vector<Column> all = columns;
  while (total_width(columns) > width) {
    const auto least = std::ranges::min_element(columns, {}, &Column::need);
    if (least->need == Column::kAlways) break;
    columns.erase(least);
  }
  std::vector<std::string> left_out;
  for (const Column& column : all)
    if (std::ranges::find(columns, column.title, &Column::title) == columns.end())
      left_out.push_back(column.title);
  return left_out;
}

std::string grid(const std::vector<Column>& columns, const std::vector<RowStyle>& rows,
                 const TerminalStyle& style) {
  std::string out = line_of(
      columns, [](const Column& column) { return column.title; }, Colour::none, style);
  out += std::string(static_cast<std::size_t>(total_width(columns)), '-') + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].gap_before) out += "\n";
    out += line_of(
        columns, [i](const Column& column) { return column.cells[i]; }, rows[i].colour, style);
  }
  return out;
}

}  // namespace convmish
