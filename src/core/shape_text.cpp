#include "core/shape_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/input_text.hpp"

namespace convmish {
namespace {

constexpr std::string_view kLetters = "n c h w k";
constexpr std::string_view kExample = "n64c64h256w256k128";

const Dimension* find_dimension(char letter) {
  const auto* found = std::ranges::find(kDimensions, letter, &Dimension::letter);
  return found == kDimensions.end() ? nullptr : found;
}

constexpr bool is_letter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
}

/// What a letter that is no dimension was probably meant to be: its lower case, or the only one missing.
std::string meant_letter(char letter, std::string_view text) {
  const char lower = letter < 'a' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (find_dimension(lower)) return fmt::format("; closest: {}", lower);
  std::string missing;
  for (const Dimension& dimension : kDimensions)
    if (text.find(dimension.letter) == text.npos) missing += dimension.letter;
  return missing.size() == 1 ? fmt::format("; closest: {}", missing) : "";
}

/// 4 bytes an element; nothing where that passes int64.
std::optional<std::int64_t> tensor_bytes(std::initializer_list<std::int64_t> extents) {
  std::int64_t bytes = sizeof(float);
  for (const std::int64_t extent : extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text;
  for (const Dimension& dimension : kDimensions)
    text += fmt::format("{}{}", dimension.letter, shape.*dimension.value);
  return text;
}

std::string wanted(const Dimension& dimension) {
  return fmt::format("an integer of at least {}{}", dimension.least,
                     dimension.least == kFilterSize ? " (3x3 filter, no padding)" : "");
}

Shape parse_shape(std::string_view text) {
  const auto fail = [&](const std::string& why) {
    throw InputError(fmt::format("shape \"{}\": {}", text, why));
  };
  if (text.empty()) fail(fmt::format("is empty; want each of {} once, as in {}", kLetters, kExample));
  if (!is_letter(text[0]))
    fail(fmt::format("begins with \"{}\"; want a letter, as in {}", text[0], kExample));

  Shape shape;
  for (std::size_t at = 0; at < text.size();) {
    const char letter = text[at];
    const Dimension* dimension = find_dimension(letter);
    if (!dimension)
      fail(fmt::format("unknown letter \"{}\"{}; the letters are {}", letter, meant_letter(letter, text),
                       kLetters));
    if (shape.*dimension->value != 0) fail(fmt::format("{} is given twice", letter));

    const std::size_t begin = at + 1;
    for (at = begin; at < text.size() && !is_letter(text[at]);) ++at;
    const std::string_view number = text.substr(begin, at - begin);
    if (number.empty()) fail(fmt::format("{} has no number; want {}", letter, wanted(*dimension)));
    const auto value = read_integer(number);
    if (!value && number.find_first_not_of("0123456789") == number.npos)
      fail(
          fmt::format("{} is {}; want at most {}", letter, number, std::numeric_limits<std::int64_t>::max()));
    if (!value) fail(fmt::format("{} is \"{}\"; want {}", letter, number, wanted(*dimension)));
    if (*value < dimension->least) fail(fmt::format("{} is {}; want {}", letter, *value, wanted(*dimension)));
    shape.*dimension->value = *value;
  }
  for (const Dimension& dimension : kDimensions)
    if (shape.*dimension.value == 0)
      fail(
          fmt::format("{} is missing; want each of {} once, as in {}", dimension.letter, kLetters, kExample));
  if (const auto why = check_shape(shape)) fail(*why);
  return shape;
}

std::optional<std::string> check_shape(const Shape& shape) {
  for (const Dimension& dimension : kDimensions)
    if (shape.*dimension.value < dimension.least)
      return fmt::format("{} is {}; want {}", dimension.letter, shape.*dimension.value, wanted(dimension));

  const auto too_large = [](std::string_view tensor, std::string_view extents) {
    return fmt::format("{} ({} floats) passes 2^63 bytes; want smaller dimensions", tensor, extents);
  };
  if (!tensor_bytes({shape.n, shape.c, shape.h, shape.w})) return too_large("x", "n c h w");
  if (!tensor_bytes({shape.k, shape.c, kTaps})) return too_large("the filter", "k c 3 3");
  if (!tensor_bytes({shape.n, shape.k, shape.p(), shape.q()})) return too_large("y", "n k p q");
  return std::nullopt;
}

}  // namespace convmish
