#include "core/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/input_text.hpp"

namespace convmish {
namespace {

/// The word for every standard variant. That for every ablation is the group's own.
constexpr std::string_view kAll = "all";

bool is_selector(std::string_view name) {
  return name == kAll || name == to_string(Group::ablation);
}

/// One item of a selection: `cudnn_*:tf32`.
struct Pattern {
  std::string name;  // a shell glob
  std::optional<MathClass> math;
  std::optional<Group> group;  // the item is the group's name

  bool is_exact() const { return name.find_first_of("*?[") == std::string::npos; }
  bool reaches(Group other) const {
    if (group) return other == *group;
    return other == Group::standard || (other == Group::ablation && is_exact());
  }
  bool names(const Variant& variant) const {
    return reaches(variant.group) && fnmatch(name.c_str(), variant.name.c_str(), 0) == 0;
  }
  bool matches(const Variant& variant) const { return names(variant) && (!math || *math == variant.math); }
};

/// Throws InputError.
Pattern parse_pattern(std::string_view text) {
  const std::size_t colon = text.find(':');
  Pattern pattern{std::string(text.substr(0, colon)), std::nullopt, std::nullopt};
  if (pattern.name.empty())
    throw InputError(fmt::format("\"{}\" names no variant; want a name or a glob, as in cudnn_*:tf32", text));
  if (pattern.name.find_first_of(", \t\n") != std::string::npos)
    throw InputError(fmt::format("\"{}\" is not one name; want a name or a glob, as in cudnn_*:tf32", text));
  if (pattern.name == to_string(Group::ablation)) pattern.group = Group::ablation;
  if (is_selector(pattern.name)) pattern.name = "*";
  if (colon != text.npos) pattern.math = parse_word<MathClass>(text.substr(colon + 1));
  return pattern;
}

/// Each once, in the order of first appearance.
template <class Project>
std::vector<std::string> distinct(const std::vector<const Variant*>& variants, Project project) {
  std::vector<std::string> texts;
  for (const Variant* variant : variants)
    if (const std::string text{project(*variant)}; std::ranges::find(texts, text) == texts.end())
      texts.push_back(text);
  return texts;
}

/// The line for a pattern that selects nothing on `device`, or on any where none is given.
std::string why_no_match(const Registry& registry, std::optional<DeviceKind> device, std::string_view text,
                         const Pattern& pattern) {
  std::vector<const Variant*> all, here, elsewhere, other_class;
  for (const Variant& variant : registry.variants()) {
    if (variant.group == Group::mutant) continue;
    all.push_back(&variant);
    if (pattern.matches(variant)) elsewhere.push_back(&variant);
    if (device && variant.device != *device) continue;
    here.push_back(&variant);
    if (pattern.names(variant)) other_class.push_back(&variant);
  }
  const auto name = [](const Variant& variant) { return variant.name; };
  const std::string on_device = device ? fmt::format(" on {}", to_string(*device)) : std::string();
  if (!elsewhere.empty()) {
    const auto kinds = distinct(elsewhere, [](const Variant& variant) { return to_string(variant.device); });
    return fmt::format("\"{}\" runs on {} only; this run is{}", text, fmt::join(kinds, ", "), on_device);
  }
  if (!other_class.empty()) {
    const auto classes =
        distinct(other_class, [](const Variant& variant) { return to_string(variant.math); });
    return fmt::format("\"{}\" matches nothing: {}{} has class {} only", text,
                       fmt::join(distinct(other_class, name), ", "), on_device, fmt::join(classes, ", "));
  }
  std::string letters = pattern.name;
  std::erase_if(letters, [](char c) { return std::string_view("*?[]!").find(c) != std::string_view::npos; });
  std::string nearest = nearest_word(letters, distinct(here, name));
  if (nearest.empty()) nearest = nearest_word(letters, distinct(all, name));
  return fmt::format("no variant matches \"{}\"; {}convmish-bench --list shows all", text,
                     nearest.empty() ? "" : fmt::format("closest: {}. ", nearest));
}

}  // namespace

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

void Registry::add(Variant variant) {
  // Anything else could not be selected: `*`, `:` and `,` have a meaning there, and so have two words.
  const bool selectable =
      !variant.name.empty() && !is_selector(variant.name) &&
      variant.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (!selectable) {
    problems_.push_back(
        fmt::format("{}: variant name \"{}\" is not made of a-z, 0-9 and _, or is \"{}\" or \"{}\"",
                    variant.file, variant.name, kAll, to_string(Group::ablation)));
    return;
  }
  const auto twin = std::ranges::find_if(variants_, [&](const Variant& other) {
    return other.name == variant.name && other.math == variant.math && other.device == variant.device;
  });
  if (twin != variants_.end()) {
    problems_.push_back(fmt::format("variant {}:{} for {} is registered twice, in {} and in {}", variant.name,
                                    to_string(variant.math), to_string(variant.device), twin->file,
                                    variant.file));
    return;
  }
  variants_.push_back(std::move(variant));
}

RegisterVariant::RegisterVariant(Variant variant, std::source_location where) {
  variant.file = where.file_name();
  Registry::instance().add(std::move(variant));
}

std::optional<std::string> check_pattern(std::string_view pattern) {
  try {
    parse_pattern(pattern);
    return std::nullopt;
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<const Variant*> select_variants(const Registry& registry, DeviceKind device,
                                            const std::vector<std::string>& patterns) {
  std::vector<Pattern> parsed;
  for (const std::string& text : patterns) {
    parsed.push_back(parse_pattern(text));
    const bool matched = std::ranges::any_of(registry.variants(), [&](const Variant& variant) {
      return variant.device == device && parsed.back().matches(variant);
    });
    if (!matched) throw InputError(why_no_match(registry, device, text, parsed.back()));
  }
  if (parsed.empty()) parsed.push_back(parse_pattern(kAll));
  std::vector<const Variant*> selected;
  for (const Variant& variant : registry.variants())
    if (variant.device == device &&
        std::ranges::any_of(parsed, [&](const Pattern& pattern) { return pattern.matches(variant); }))
      selected.push_back(&variant);
  return selected;
}

std::vector<const Variant*> find_variants(const Registry& registry, const std::string& text) {
  const Pattern pattern = parse_pattern(text);
  std::vector<const Variant*> found;
  for (const Variant& variant : registry.variants())
    if (pattern.matches(variant)) found.push_back(&variant);
  if (found.empty()) throw InputError(why_no_match(registry, std::nullopt, text, pattern));
  return found;
}

std::vector<const Variant*> variants_of_group(const Registry& registry, DeviceKind device, Group group) {
  std::vector<const Variant*> found;
  for (const Variant& variant : registry.variants())
    if (variant.device == device && variant.group == group) found.push_back(&variant);
  return found;
}

std::optional<std::string> why_unavailable(const Variant& variant, const DeviceInfo& device) {
  if (variant.device != device.kind)
    return fmt::format("runs on {}; this device is {}", to_string(variant.device), to_string(device.kind));
  if (device.kind == DeviceKind::cuda && device.compute_capability() < variant.min_compute_capability)
    return fmt::format("needs compute capability {}.{}; this GPU has {}.{}",
                       variant.min_compute_capability / 10, variant.min_compute_capability % 10,
                       device.compute_major, device.compute_minor);
  return std::nullopt;
}

}  // namespace convmish
