#include "core/json_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "core/input_text.hpp"

namespace convmish {
namespace {

using nlohmann::json;

/// Refuses a key that stands twice in one object: JSON leaves open which of the two counts. Sees the
/// parser's events, and follows where in the document it is.
class DuplicateKeyGuard {
 public:
  explicit DuplicateKeyGuard(const std::string& file) : file_(file) {}

  bool operator()(int, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        open_.emplace_back().is_array = event == Event::array_start;
        break;
      case Event::key:
        enter(parsed.get<std::string>());
        break;
      case Event::object_end:
      case Event::array_end:
        open_.pop_back();
        [[fallthrough]];
      case Event::value:
        if (!open_.empty() && open_.back().is_array) ++open_.back().index;
        break;
    }
    return true;  // keep the value
  }

 private:
  struct Level {
    bool is_array = false;
    std::size_t index = 0;       // of the array's element that is being read
    std::string key;             // of the object's member that is being read
    std::set<std::string> keys;  // seen so far
  };

  void enter(const std::string& key) {
    open_.back().key = key;
    if (open_.back().keys.insert(key).second) return;
    std::string pointer;
    for (const Level& level : open_)
      pointer += level.is_array ? fmt::format("/{}", level.index) : pointer_step(level.key);
    throw InputError(fmt::format("{}: {}: key is given twice; want it once", file_, pointer));
  }

  const std::string& file_;
  std::vector<Level> open_;
};

/// `input`: anything that the library parses.
template <class Input>
json parse(Input& input, const std::string& source) {
  try {
    return json::parse(input, DuplicateKeyGuard(source));
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the class is not for users.
    const std::string_view message = error.what();
    const std::size_t bracket = message.find("] ");
    throw InputError(
        fmt::format("{}: not JSON: {}", source, message.substr(bracket == message.npos ? 0 : bracket + 2)));
  }
}

}  // namespace

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char c : key) {
    if (c == '~')
      step += "~0";
    else if (c == '/')
      step += "~1";
    else
      step += c;
  }
  return step;
}

JsonNode JsonNode::at(const std::string& key) const {
  return {file_, value_.at(key), pointer_ + pointer_step(key)};
}
JsonNode JsonNode::at(std::size_t index) const {
  return {file_, value_.at(index), fmt::format("{}/{}", pointer_, index)};
}

void JsonNode::fail(std::string_view why) const {
  throw InputError(fmt::format("{}: {}{}{}", file_, pointer_, pointer_.empty() ? "" : ": ", why));
}

void JsonNode::want(std::string_view what) const {
  if (value_.is_structured())
    fail(fmt::format("is an {}{}; want {}", value_.empty() ? "empty " : "", value_.type_name(), what));
  constexpr std::size_t kShown = 40;  // characters of the value
  std::string found = value_.dump(-1, ' ', true);
  if (found.size() > kShown) found.replace(kShown, found.npos, "...");
  fail(fmt::format("is {}; want {}", found, what));
}

void JsonNode::want_array(std::string_view what) const {
  if (!value_.is_array() || value_.empty()) want(what);
}

void JsonNode::want_object(std::string_view what, const std::vector<std::string>& known_keys) const {
  if (!value_.is_object()) want(what);
  for (const auto& [key, value] : value_.items())
    if (std::ranges::find(known_keys, key) == known_keys.end())
      at(key).fail("unknown key" + advice(key, known_keys));
}

nlohmann::json parse_json_file(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: is a directory; want a file", file));
  std::ifstream stream(path);
  if (!stream) throw InputError(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
  return parse(stream, file);
}

nlohmann::json parse_json(std::string_view text, const std::string& source) {
  return parse(text, source);
}

}  // namespace convmish
