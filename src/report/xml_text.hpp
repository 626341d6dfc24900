// Text that XML 1.0 can hold.
#pragma once

#include <string>
#include <string_view>

namespace convmish {

/// `text` with U+FFFD for what no XML 1.0 document may contain, not even escaped (section 2.2 of the
/// specification: most control characters, U+FFFE and U+FFFF), and for what is not UTF-8.
std::string xml_text(std::string_view text);

}  // namespace convmish
