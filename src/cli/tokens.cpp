// The one user of cxxopts. Every option is text to it, so that each mistake in a value is told in this
// tool's words.
#include "cli/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>
#include <memory>

#include "core/error.hpp"
#include "core/input_text.hpp"

namespace convmish {
namespace {

const Option& find_option(const std::vector<Option>& table, std::string_view name) {
  return *std::ranges::find(table, name, &Option::name);
}

/// The line for a token that starts with a dash and is no option.
std::string unknown_option(const std::string& token, std::span<const char* const> arguments,
                           const std::vector<Option>& table) {
  // cxxopts reads -shape as five letters; the user wrote one word.
  const auto written = std::ranges::find_if(
      arguments.subspan(1), [&](std::string_view argument) { return argument.starts_with(token); });
  std::string name = written == arguments.end() ? token : *written;
  name.resize(std::min(name.find('='), name.size()));
  std::vector<std::string> names;
  for (const Option& option : table) {
    names.push_back(fmt::format("--{}", option.name));
    if (option.takes == Takes::on_off) names.push_back(fmt::format("--no-{}", option.name));
  }
  const std::size_t word = name.find_first_not_of('-');
  const std::string nearest = word == name.npos ? "" : nearest_word("--" + name.substr(word), names);
  return fmt::format("unknown option \"{}\"; {}", name,
                     nearest.empty() ? "convmish-bench --help lists all" : "closest: " + nearest);
}

}  // namespace

Tokens tokenize(std::span<const char* const> arguments, const std::vector<Option>& table) {
  cxxopts::Options parser("convmish-bench");
  parser.allow_unrecognised_options();
  std::map<std::string, std::string> negations;  // no-check -> check
  for (const Option& option : table) {
    const std::string name(option.name);
    const auto value = [&]() -> std::shared_ptr<cxxopts::Value> {
      if (option.takes == Takes::value) return cxxopts::value<std::string>();
      return cxxopts::value<std::string>()->implicit_value(kOn);
    };
    parser.add_options()(option.letter ? fmt::format("{},{}", option.letter, name) : name, "", value());
    if (option.takes != Takes::on_off) continue;
    negations["no-" + name] = name;
    parser.add_options()("no-" + name, "", value());
  }

  Tokens tokens;
  try {
    const auto parsed = parser.parse(static_cast<int>(arguments.size()), arguments.data());
    for (const auto& argument : parsed.arguments()) {
      const auto negation = negations.find(argument.key());
      const bool negative = negation != negations.end();
      const std::string& name = negative ? negation->second : argument.key();
      const Option& option = find_option(table, name);
      const std::string& value = argument.value();
      if (option.takes != Takes::value && value != kOn)
        throw InputError(fmt::format("--{} takes no value, but was given \"{}\"", argument.key(), value));
      if (value.empty()) throw InputError(fmt::format("--{} is empty; want {}", name, option.argument));
      if (value.starts_with("--"))
        throw InputError(fmt::format("--{} wants {}, not the option {}", name, option.argument, value));
      tokens.given[name].push_back(negative ? kOff : value);
    }
    tokens.rest = parsed.unmatched();
  } catch (const cxxopts::exceptions::missing_argument&) {
    const std::string_view last = arguments.back();  // only the last one can lack its value
    throw InputError(fmt::format("{} wants {}", last, find_option(table, last.substr(2)).argument));
  } catch (const cxxopts::exceptions::exception& error) {
    throw InputError(error.what());
  }
  for (const std::string& word : tokens.rest)
    if (word.starts_with('-')) throw InputError(unknown_option(word, arguments, table));
  return tokens;
}

}  // namespace convmish
