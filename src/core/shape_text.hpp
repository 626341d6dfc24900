// Shapes as text: "n64c64h256w256k128", letters in any order, each exactly once.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/shape.hpp"

namespace convmish {

/// A dimension: its letter, its place in a Shape, its least value.
struct Dimension {
  char letter;
  std::int64_t Shape::*value;
  std::int64_t least;
};

/// In the order of a shape's text, and of a sweep from slowest to fastest.
inline constexpr std::array<Dimension, 5> kDimensions{{{'n', &Shape::n, 1},
                                                       {'c', &Shape::c, 1},
                                                       {'h', &Shape::h, kFilterSize},
                                                       {'w', &Shape::w, kFilterSize},
                                                       {'k', &Shape::k, 1}}};

/// "n64c64h256w256k128".
std::string to_string(const Shape& shape);

/// Throws InputError with one line that says what is wrong and what would be right.
Shape parse_shape(std::string_view text);

/// What a value of this dimension must be: "an integer of at least 3 (3x3 filter, no padding)".
std::string wanted(const Dimension& dimension);

/// Nothing if `shape` is valid, else the reason: a dimension below its least value, or a tensor whose
/// bytes overflow 63 bits.
std::optional<std::string> check_shape(const Shape& shape);

}  // namespace convmish
