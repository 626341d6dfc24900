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

  const char* const no_colour = std::getenv("NO_COLOR");  // https://no-color.org: set and not empty
  const char* const terminal = std::getenv("TERM");
  style.colour = (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
                 std::string_view(terminal) != "dumb";
  return style;
}

}  // namespace convmish
