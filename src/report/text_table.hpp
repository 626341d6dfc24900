// Tables and folded lines, for a terminal of any width or for a file.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/terminal.hpp"

namespace convmish {

inline constexpr std::string_view kGap = "  ";         // between columns
inline constexpr std::string_view kNotMeasured = "-";  // a cell of its own, never 0

enum class Colour { none, green, yellow, red };

std::string coloured(std::string text, Colour colour, const TerminalStyle& style);

/// Columns on a terminal: UTF-8 code points (names of devices and plug-ins may hold any).
int display_width(std::string_view text);

/// Items on as few lines as the width allows. One that is longer than a line stays whole, to be copied; later
/// lines are indented. With a final newline; control characters in an item are not shown.
std::string folded(const std::vector<std::string>& items, std::string_view gap, int width, int indent);
/// The words of a text.
std::string folded(std::string_view text, int width, int indent);

struct Column {
  std::string title;
  int need = 0;  // the column of least need is left out first; kAlways never
  enum class Align { left, right } align = Align::right;
  bool coloured = false;  // by its row's colour
  std::vector<std::string> cells;

  static constexpr int kAlways = 100;

  int width() const;
  bool empty() const;  // nothing was measured
};

/// A column from rows, which are pointers to what `text` takes. An empty cell is told as not measured;
/// control characters are not shown.
template <class Rows, class Text>
Column text_column(std::string title, int need, const Rows& rows, Text text,
                   Column::Align align = Column::Align::right) {
  Column column{.title = std::move(title), .need = need, .align = align, .cells = {}};
  for (const auto* row : rows) {
    std::string cell = text(*row);
    column.cells.push_back(cell.empty() ? std::string(kNotMeasured) : printable(std::move(cell)));
  }
  return column;
}

/// The decimals that give the smallest of positive numbers `digits` digits; HUGE_VAL where there is none.
int decimals_for(double smallest, int digits);

/// Numbers with their points one below the other: as many decimals as give the smallest of them `digits`
/// digits. `mark` goes before the number.
template <class Rows, class Number, class Mark>
Column number_column(std::string title, int need, int digits, const Rows& rows, Number number, Mark mark) {
  double smallest = HUGE_VAL;
  for (const auto* row : rows)
    if (const std::optional<double> value = number(*row); value && *value > 0)
      smallest = std::fmin(smallest, *value);
  return text_column(std::move(title), need, rows, [&](const auto& row) {
    const std::optional<double> value = number(row);
    return value ? mark(row) + fmt::format("{:.{}f}", *value, decimals_for(smallest, digits)) : std::string();
  });
}

/// Takes columns away until the rest fits, and returns their titles in the order of the table.
std::vector<std::string> fit(std::vector<Column>& columns, int width);

struct RowStyle {
  Colour colour = Colour::none;
  bool gap_before = false;  // an empty line
};

/// Titles, a rule and the rows, of which there are as many as styles.
std::string grid(const std::vector<Column>& columns, const std::vector<RowStyle>& rows,
                 const TerminalStyle& style);

}  // namespace convmish
