#include "report/valid_text.hpp"

#include <boost/locale/utf.hpp>

namespace convmish {
namespace {

namespace utf = boost::locale::utf;

bool is_xml_character(utf::code_point c) {
  if (!utf::is_valid_codepoint(c) || c == 0xFFFE || c == 0xFFFF) return false;
  return c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

std::string valid_text(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string out;
  for (auto at = text.begin(); at != text.end();) {
    auto end = at;
    const utf::code_point c = utf::utf_traits<char>::decode(end, text.end());
    if (is_xml_character(c)) {
      out.append(at, end);
      at = end;
    } else {
      out += kReplacement;
      // Of what is not UTF-8 one byte only: the next may begin a character.
      at = utf::is_valid_codepoint(c) ? end : at + 1;
    }
  }
  return out;
}

}  // namespace convmish
