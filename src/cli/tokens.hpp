// The command line cut into options by the table of options, with no meaning given to any yet.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.hpp"

namespace convmish {

/// What one option was given, in order. A switch holds kOn or kOff.
using Values = std::vector<std::string>;
inline constexpr const char* kOn = "on";
inline constexpr const char* kOff = "off";

/// on_off: --name and --no-name; verb: nothing, and the option is another way to write the verb of its name.
enum class Takes { value, nothing, on_off, verb };

/// Which verbs look at an option: any other would ignore it without a word.
using Verbs = unsigned;
constexpr Verbs only(Verb verb) {
  return 1u << static_cast<unsigned>(verb);
}

/// A row of the table of options.
struct Option {
  std::string_view group, name;
  Verbs verbs;
  Takes takes;
  std::string_view argument;  // what the help calls the value
  std::string help;           // a line break starts a new line of the help
  /// Throws InputError, without the option's name. Null for what parse_command_line itself reads: the config
  /// file, and the verbs.
  void (*apply)(const Values&, CommandLine&);
  char letter = 0;  // short form
};

/// The command line's parts.
struct Tokens {
  std::map<std::string, Values> given;  // by option name; on_off options under the positive one
  std::vector<std::string> rest;        // verbs and what stands behind them, in order
};

/// Throws InputError for an unknown option, and for a value that is missing or not wanted.
Tokens tokenize(std::span<const char* const> arguments, const std::vector<Option>& table);

}  // namespace convmish
