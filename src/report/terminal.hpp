// What the terminal that output goes to can show.
#pragma once

#include <limits>
#include <string>

namespace convmish {

struct TerminalStyle {
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  int width = kUnlimited;  // columns; text that is not for a terminal is not folded
  bool rewrites = false;   // a line can be taken back and written anew
  bool colour = false;
};

/// The style for a file descriptor: colour on a terminal that has it, unless the environment variable
/// NO_COLOR is set; a terminal's width, or no limit for files and pipes.
TerminalStyle terminal_style(int file_descriptor);

/// Text that a file or an argument brought along, its control characters as spaces: one line, and nothing
/// that a terminal obeys.
std::string printable(std::string text);

}  // namespace convmish
