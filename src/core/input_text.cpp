#include "core/input_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace convmish {
namespace {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` ("optimal string
/// alignment": no place is edited twice).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string nearest_word(std::string_view text, const std::vector<std::string>& candidates) {
  if (text.empty()) return {};
  // A third of the letters may be wrong; beyond that, a guess would mislead.
  std::size_t least = (text.size() + 2) / 3 + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    // A beginning of a word is as near as one slip: "hopper" means hopper_fp16x1.
    const bool begins = text.size() > 1 && candidate.starts_with(text);
    const std::size_t distance = begins ? 1 : edit_distance(text, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string advice(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_word(text, candidates);
  return nearest.empty() ? fmt::format("; want one of {}", fmt::join(candidates, ", "))
                         : fmt::format("; closest: {}", nearest);
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  return read_number<std::int64_t>(text);
}
std::optional<std::uint64_t> read_unsigned(std::string_view text) {
  return read_number<std::uint64_t>(text);
}
std::optional<double> read_real(std::string_view text) {
  return read_number<double>(text);
}

std::optional<double> read_share(std::string_view text) {
  if (!text.ends_with('%')) return read_real(text);
  const auto percent = read_real(text.substr(0, text.size() - 1));
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

}  // namespace convmish
