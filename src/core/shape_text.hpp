// Shapes as text: "n64c64h256w256k128", letters in any order, each exactly once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/shape.hpp"

namespace convmish {

std::string to_string(const Shape& shape);

/// Throws InputError with one line that says what is wrong and what would be right.
Shape parse_shape(std::string_view text);

/// Nothing if `shape` is valid, else the reason: a dimension below its least value, or a tensor whose
/// bytes overflow 63 bits.
std::optional<std::string> check_shape(const Shape& shape);

}  // namespace convmish
