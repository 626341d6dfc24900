// JSON that a person wrote: each value knows where it stands, so that a mistake is told with its place.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace convmish {

/// A value of a file, and its JSON pointer (RFC 6901). The file's name and the document outlive it.
class JsonNode {
 public:
  JsonNode(const std::string& file, const nlohmann::json& value, std::string pointer = {})
      : file_(file), value_(value), pointer_(std::move(pointer)) {}

  const nlohmann::json& value() const { return value_; }
  JsonNode at(const std::string& key) const;
  JsonNode at(std::size_t index) const;

  /// Throws InputError "FILE: /json/pointer: why".
  [[noreturn]] void fail(std::string_view why) const;
  /// Throws InputError "FILE: /json/pointer: is VALUE; want what".
  [[noreturn]] void want(std::string_view what) const;

  void want_array(std::string_view what) const;  // with at least one element
  void want_object(std::string_view what, const std::vector<std::string>& known_keys) const;

  /// `call()`, its InputError told with this place.
  template <class Call>
  auto here(Call call) const {
    try {
      return call();
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

 private:
  const std::string& file_;
  const nlohmann::json& value_;
  std::string pointer_;
};

/// One step of a JSON pointer: "/" and the key, escaped.
std::string pointer_step(std::string_view key);

/// The document in a file. Throws InputError "FILE: reason" for a file that cannot be read, is not JSON
/// (with line and column), or has a key twice in one object.
nlohmann::json parse_json_file(const std::filesystem::path& path);
/// The same of a text that `source` names in messages.
nlohmann::json parse_json(std::string_view text, const std::string& source);

/// A number without a fraction, however it is written: 64, 64.0 and 6.4e1 are one number in JSON.
template <class Integer>
std::optional<Integer> as_integer(const nlohmann::json& value) {
  const auto in_range = [](auto number) {
    return std::in_range<Integer>(number) ? std::optional(static_cast<Integer>(number)) : std::nullopt;
  };
  if (value.is_number_unsigned()) return in_range(value.get<std::uint64_t>());
  if (value.is_number_integer()) return in_range(value.get<std::int64_t>());
  if (!value.is_number_float()) return std::nullopt;
  const double real = value.get<double>();
  if (real != std::trunc(real) || std::abs(real) > 0x1p53) return std::nullopt;
  return in_range(static_cast<std::int64_t>(real));
}

}  // namespace convmish
