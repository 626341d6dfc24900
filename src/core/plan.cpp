#include "core/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/input_text.hpp"
#include "core/json_node.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

/// What a key of an object means: reads it into a Target.
template <class Target>
struct Key {
  std::string_view name;
  void (*read)(const JsonNode&, Target&);
};

template <class Target>
void read_object(const JsonNode& node, std::string_view what, std::span<const Key<Target>> keys,
                 Target& target) {
  std::vector<std::string> names;
  for (const auto& key : keys) names.emplace_back(key.name);
  node.want_object(what, names);
  for (const auto& key : keys)
    if (node.value().contains(key.name)) key.read(node.at(std::string(key.name)), target);
}

bool read_switch(const JsonNode& node) {
  if (!node.value().is_boolean()) node.want("true or false");
  return node.value().get<bool>();
}

double read_seconds(const JsonNode& node) {
  if (!node.value().is_number() || !is_valid_seconds(node.value().get<double>())) node.want(wanted_seconds());
  return node.value().get<double>();
}

constexpr Key<TimingOptions> kTimingKeys[] = {
    {"min_time_s",
     [](const JsonNode& node, TimingOptions& timing) { timing.min_time_s = read_seconds(node); }},
    {"max_time_s",
     [](const JsonNode& node, TimingOptions& timing) { timing.max_time_s = read_seconds(node); }},
    {"ci_half_width",
     [](const JsonNode& node, TimingOptions& timing) {
       if (!node.value().is_number() || !is_valid_half_width(node.value().get<double>()))
         node.want(wanted_half_width());
       timing.ci_half_width = node.value().get<double>();
     }},
    {"samples",
     [](const JsonNode& node, TimingOptions& timing) {
       const auto samples = as_integer<int>(node.value());
       if (!samples || !is_valid_samples(*samples)) node.want(wanted_samples());
       timing.samples = samples;
     }},
    {"duty_cycle",
     [](const JsonNode& node, TimingOptions& timing) {
       if (!node.value().is_number() || !is_valid_duty_cycle(node.value().get<double>()))
         node.want(wanted_duty_cycle());
       timing.duty_cycle = node.value().get<double>();
     }},
    {"cache",
     [](const JsonNode& node, TimingOptions& timing) {
       if (!node.value().is_string()) node.want("auto, hot or cold");
       timing.cache = node.here([&] { return parse_cache(node.value().get<std::string>()); });
     }},
};

/// A dimension of a shape object: one value, or a list of them to sweep.
std::vector<std::int64_t> read_extents(const JsonNode& node, const Dimension& dimension) {
  const auto read_one = [&](const JsonNode& extent) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    if (extent.value().is_number() && extent.value().get<double>() > static_cast<double>(kMax))
      extent.want(fmt::format("at most {}", kMax));
    const auto value = as_integer<std::int64_t>(extent.value());
    if (!value || *value < dimension.least) extent.want(wanted(dimension));
    return *value;
  };
  if (!node.value().is_array()) return {read_one(node)};
  node.want_array(wanted(dimension) + ", or a list of such");
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < node.value().size(); ++i) extents.push_back(read_one(node.at(i)));
  return extents;
}

/// An object n c h w k whose lists multiply, n slowest and k fastest.
void read_sweep(const JsonNode& node, std::vector<Shape>& shapes) {
  std::vector<std::string> letters;
  for (const Dimension& dimension : kDimensions) letters.emplace_back(1, dimension.letter);
  node.want_object("a shape: text as in \"n64c64h256w256k128\", or an object n c h w k", letters);

  std::array<std::vector<std::int64_t>, kDimensions.size()> extents;
  std::size_t count = 1;
  for (std::size_t d = 0; d < kDimensions.size(); ++d) {
    if (!node.value().contains(letters[d]))
      node.fail(fmt::format("{} is missing; want each of n c h w k", letters[d]));
    extents[d] = read_extents(node.at(letters[d]), kDimensions[d]);
    if (extents[d].size() > (kMaxShapes - shapes.size()) / count)
      node.fail(fmt::format("brings the file to more than {} shapes; want shorter lists", kMaxShapes));
    count *= extents[d].size();
  }

  for (std::size_t i = 0; i < count; ++i) {
    Shape shape;
    std::size_t rest = i;
    for (std::size_t d = kDimensions.size(); d-- > 0; rest /= extents[d].size())
      shape.*kDimensions[d].value = extents[d][rest % extents[d].size()];
    if (const auto why = check_shape(shape))
      node.fail(fmt::format("shape \"{}\": {}", to_string(shape), *why));
    shapes.push_back(shape);
  }
}

void read_shapes(const JsonNode& node, RunOptions& options) {
  node.want_array("a list of shapes");
  for (std::size_t i = 0; i < node.value().size(); ++i) {
    const JsonNode item = node.at(i);
    if (item.value().is_string())
      options.shapes.push_back(item.here([&] { return parse_shape(item.value().get<std::string>()); }));
    else
      read_sweep(item, options.shapes);
    if (options.shapes.size() > kMaxShapes)
      item.fail(fmt::format("brings the file to more than {} shapes; want fewer", kMaxShapes));
  }
}

/// `take` is given each text of a list of texts; what it refuses is told with its place.
template <class Take>
void read_texts(const JsonNode& node, std::string_view what, Take take) {
  node.want_array(fmt::format("a list of {}", what));
  for (std::size_t i = 0; i < node.value().size(); ++i) {
    const JsonNode item = node.at(i);
    if (!item.value().is_string()) item.want(fmt::format("text, one of the {}", what));
    item.here([&] { take(item.value().get<std::string>()); });
  }
}

/// For people and for editors: `why` a file exists, and where its schema is.
void read_remark(const JsonNode& node, RunOptions&) {
  if (!node.value().is_string()) node.want("text");
}

constexpr Key<RunOptions> kKeys[] = {
    {"$schema", read_remark},
    {"why", read_remark},
    {"variants",
     [](const JsonNode& node, RunOptions& options) {
       read_texts(node, "variants", [&](const std::string& text) {
         if (const auto why = check_pattern(text)) throw InputError(*why);
         options.variants.push_back(text);
       });
     }},
    {"shapes", read_shapes},
    {"fills",
     [](const JsonNode& node, RunOptions& options) {
       read_texts(node, "fills",
                  [&](const std::string& text) { options.fills.push_back(parse_word<Fill>(text)); });
     }},
    {"tolerances",
     [](const JsonNode& node, RunOptions& options) {
       read_texts(node, "tolerances",
                  [&](const std::string& text) { options.tolerances.push_back(parse_tolerance(text)); });
     }},
    {"seed",
     [](const JsonNode& node, RunOptions& options) {
       const auto seed = as_integer<std::uint64_t>(node.value());
       if (!seed)
         node.want(fmt::format("an integer from 0 to {}", std::numeric_limits<std::uint64_t>::max()));
       options.seed = *seed;
     }},
    {"check", [](const JsonNode& node, RunOptions& options) { options.check = read_switch(node); }},
    {"time", [](const JsonNode& node, RunOptions& options) { options.time = read_switch(node); }},
    {"timeout_s",
     [](const JsonNode& node, RunOptions& options) {
       const auto seconds = as_integer<std::int64_t>(node.value());
       if (!seconds || !is_valid_timeout(*seconds)) node.want(wanted_timeout());
       options.timeout_s = static_cast<int>(*seconds);
     }},
    {"timing",
     [](const JsonNode& node, RunOptions& options) {
       read_object<TimingOptions>(node, "an object of timing options", kTimingKeys, options.timing);
     }},
};

}  // namespace

Tolerance parse_tolerance(const std::string& text) {
  if (text == "strict") return {};
  if (text == "kernelbench") return {.kind = Tolerance::Kind::kernelbench};
  constexpr std::string_view kRtol = "rtol=", kAtol = ",atol=";
  const auto comma = text.find(kAtol);
  if (text.starts_with(kRtol) && comma != std::string::npos) {
    const auto rtol = read_real(text.substr(kRtol.size(), comma - kRtol.size()));
    const auto atol = read_real(text.substr(comma + kAtol.size()));
    if (rtol && atol && *rtol >= 0 && *atol >= 0 && std::isfinite(*rtol) && std::isfinite(*atol))
      return {Tolerance::Kind::allclose, *rtol, *atol};
  }
  throw InputError(fmt::format(
      "got \"{}\"; want strict, kernelbench or rtol=R,atol=A with R and A >= 0, as in rtol=1e-4,atol=1e-5",
      text));
}

std::string to_string(const Tolerance& tolerance) {
  switch (tolerance.kind) {
    case Tolerance::Kind::strict:
      return "strict";
    case Tolerance::Kind::kernelbench:
      return "kernelbench";
    case Tolerance::Kind::allclose:
      break;
  }
  return fmt::format("rtol={},atol={}", tolerance.rtol, tolerance.atol);
}

bool is_valid_seconds(double seconds) {
  return 0 < seconds && seconds <= kMaxSeconds;
}

std::string wanted_seconds() {
  return fmt::format("seconds, above 0 and at most {}", kMaxSeconds);
}

bool is_valid_timeout(std::int64_t seconds) {
  return seconds >= 1 && static_cast<double>(seconds) <= kMaxSeconds;
}

std::string wanted_timeout() {
  return fmt::format("whole seconds from 1 to {:.0f}", kMaxSeconds);
}

bool is_valid_half_width(double share) {
  return 0 < share && share < 1;
}

std::string wanted_half_width() {
  return "a share of the median between 0 and 1, as in 0.005";
}

bool is_valid_duty_cycle(double share) {
  return kLeastDutyCycle <= share && share <= 1;
}

std::string wanted_duty_cycle() {
  return fmt::format("a share of the time from {} to 1, as in 0.5", kLeastDutyCycle);
}

bool is_valid_samples(std::int64_t count) {
  return 1 <= count && count <= kMaxSamples;
}

std::string wanted_samples() {
  return fmt::format("an integer from 1 to {}", kMaxSamples);
}

std::optional<Cache> parse_cache(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (const auto cache = from_string<Cache>(text)) return cache;
  throw InputError(fmt::format("got \"{}\"; want auto, hot or cold", text));
}

std::optional<std::string> check_options(const RunOptions& options) {
  if (!options.check && !options.time)
    return "check and time are both off, which leaves nothing to do; want at least one";
  if (!options.check && !options.tolerances.empty())
    return "a tolerance is asked for, but check is off; want the check on";
  if (options.timing.least_s() > options.timing.most_s())
    return fmt::format("the min time, {} s, is longer than the max time, {} s; want it no longer",
                       options.timing.least_s(), options.timing.most_s());
  return std::nullopt;
}

void drop_repeats(RunOptions& options) {
  std::set<std::array<std::int64_t, kDimensions.size()>> shapes;
  std::erase_if(options.shapes, [&](const Shape& s) {
    return !shapes.insert({s.n, s.c, s.h, s.w, s.k}).second;
  });
  std::vector<Tolerance> tolerances;
  for (const Tolerance& tolerance : options.tolerances)
    if (tolerance != Tolerance{} && std::ranges::find(tolerances, tolerance) == tolerances.end())
      tolerances.push_back(tolerance);
  options.tolerances = std::move(tolerances);
  std::set<Fill> fills;
  std::erase_if(options.fills, [&](Fill fill) { return !fills.insert(fill).second; });
}

RunOptions load_config(const std::filesystem::path& path) {
  const std::string file = path.string();
  const nlohmann::json document = parse_json_file(path);
  const JsonNode root(file, document);
  RunOptions options;
  read_object<RunOptions>(root, "an object with keys such as \"shapes\"", kKeys, options);
  if (const auto why = check_options(options)) root.fail(*why);
  drop_repeats(options);
  return options;
}

}  // namespace convmish
