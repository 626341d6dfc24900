#include "report/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace convmish {

TerminalStyle terminal_style(int file_descriptor) {
  TerminalStyle style;
  if (::isatty(file_descriptor) == 0) return style;

  winsize size{};
  constexpr int kUsualWidth = 80;  // where a terminal does not tell, as over a serial line
  style.width =
      ::ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;

  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  const bool moves_cursor = !variable("TERM").empty() && variable("TERM") != "dumb";
  style.rewrites = moves_cursor && variable("CI").empty();      // a CI's log keeps every line
  style.colour = moves_cursor && variable("NO_COLOR").empty();  // https://no-color.org: set and not empty
  return style;
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t at) {
      return static_cast<unsigned char>(at < text.size() ? text[at] : 0);
    };
    const bool is_c1 = byte(i) == 0xC2 && 0x80 <= byte(i + 1) && byte(i + 1) <= 0x9F;  // U+0080 to U+009F
    if (is_c1) text.erase(i, 1);
    if (is_c1 || byte(i) < ' ' || byte(i) == 0x7F) text[i] = ' ';
  }
  return text;
}

}  // namespace convmish
