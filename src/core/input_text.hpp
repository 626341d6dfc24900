// Words and numbers that a person typed: read strictly, refused with one line that says what would be right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/words.hpp"

namespace convmish {

/// The word of `candidates` nearest to `text`: by edit distance, or because it begins with `text`. Empty if
/// none is near.
std::string nearest_word(std::string_view text, const std::vector<std::string>& candidates);

/// `; closest: tiled`, or `; want one of a, b, c` where none is near.
std::string advice(std::string_view text, const std::vector<std::string>& candidates);

/// The number that is all of `text`; nothing for anything else, overflow included.
std::optional<std::int64_t> read_integer(std::string_view text);
std::optional<std::uint64_t> read_unsigned(std::string_view text);
std::optional<double> read_real(std::string_view text);
/// The same of a share, which may be written in percent: "0.5%" is "0.005".
std::optional<double> read_share(std::string_view text);

/// The spellings of an enumeration.
template <class Enum>
std::vector<std::string> spellings() {
  std::vector<std::string> texts;
  for (const auto& word : Words<Enum>::list) texts.emplace_back(word.text);
  return texts;
}

/// The value spelled `text`. Throws InputError: `unknown fill "nromal"; closest: normal`.
template <class Enum>
Enum parse_word(std::string_view text) {
  if (const auto value = from_string<Enum>(text)) return *value;
  throw InputError("unknown " + std::string(Words<Enum>::name) + " \"" + std::string(text) + '"' +
                   advice(text, spellings<Enum>()));
}

}  // namespace convmish
