// Names and messages as the CSV and JUnit reports can hold them, whatever bytes they are of.
#pragma once

#include <string>
#include <string_view>

namespace convmish {

/// `text` with U+FFFD for what no XML 1.0 document may contain, not even escaped (section 2.2 of the
/// specification: most control characters, U+FFFE and U+FFFF), and for what is not UTF-8.
std::string valid_text(std::string_view text);

}  // namespace convmish
