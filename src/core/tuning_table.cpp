#include "core/tuning_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "core/input_text.hpp"
#include "core/json_node.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

std::string key_of(const Variant& variant) {
  return fmt::format("{}:{}", variant.name, to_string(variant.math));
}

std::string read_text(const JsonNode& node, std::string_view what) {
  if (!node.value().is_string() || node.value().get_ref<const std::string&>().empty()) node.want(what);
  return node.value().get<std::string>();
}

/// Calls `read` with each key and value. An empty object says nothing, but is no mistake.
template <class Read>
void for_each_member(const JsonNode& node, std::string_view what, Read read) {
  if (!node.value().is_object()) node.want(what);
  for (const auto& [key, value] : node.value().items()) read(key, node.at(key));
}

Shape read_shape(const std::string& key, const JsonNode& node) {
  const Shape shape = node.here([&] { return parse_shape(key); });
  if (const std::string usual = to_string(shape); usual != key)
    node.fail(fmt::format("is an unusual spelling of a shape; want \"{}\"", usual));
  return shape;
}

}  // namespace

bool TuningTable::ByCount::operator()(const Shape& a, const Shape& b) const {
  const auto key = [](const Shape& s) { return std::tuple(s.n, s.c, s.h, s.w, s.k); };
  return key(a) < key(b);
}

TuningTable TuningTable::load(const std::filesystem::path& path) {
  const std::string source = path.string();
  return read(JsonNode(source, parse_json_file(path)), source);
}

TuningTable TuningTable::parse(std::string_view text, const std::string& source) {
  return read(JsonNode(source, parse_json(text, source)), source);
}

TuningTable TuningTable::read(const JsonNode& root, const std::string& source) {
  TuningTable table;
  table.source_ = source;
  root.want_object("an object with the key \"devices\"", {"$schema", "why", "devices"});
  if (root.value().contains("$schema")) table.schema_ = read_text(root.at("$schema"), "text");
  if (root.value().contains("why")) table.why_ = read_text(root.at("why"), "text");
  if (!root.value().contains("devices")) root.fail("devices is missing; want an object of devices by name");
  const auto read_variant = [](const JsonNode& node, OfVariant& of_variant) {
    for_each_member(node, "an object of configurations by shape", [&](const auto& shape, const auto& name) {
      of_variant[read_shape(shape, name)] = read_text(name, "the name of a configuration");
    });
  };
  const auto read_device = [&](const JsonNode& node, OfDevice& of_device) {
    for_each_member(
        node, "an object of variants, as in \"NAME:fp32\"",
        [&](const auto& name, const auto& of_variant) { read_variant(of_variant, of_device[name]); });
  };
  for_each_member(
      root.at("devices"), "an object of devices by name",
      [&](const auto& name, const auto& of_device) { read_device(of_device, table.devices_[name]); });
  return table;
}

std::optional<std::string> TuningTable::find(const DeviceInfo& device, const Variant& variant,
                                             const Shape& shape) const {
  const auto of_device = devices_.find(device.name);
  if (of_device == devices_.end()) return std::nullopt;
  const auto of_variant = of_device->second.find(key_of(variant));
  if (of_variant == of_device->second.end()) return std::nullopt;
  const auto found = of_variant->second.find(shape);
  return found == of_variant->second.end() ? std::nullopt : std::optional(found->second);
}

void TuningTable::set(const DeviceInfo& device, const Variant& variant, const Shape& shape,
                      std::string configuration) {
  devices_[device.name][key_of(variant)][shape] = std::move(configuration);
}

void TuningTable::adopt(const TuningTable& other) {
  for (const auto& [device, of_device] : other.devices_)
    for (const auto& [variant, of_variant] : of_device)
      for (const auto& [shape, configuration] : of_variant) devices_[device][variant][shape] = configuration;
}

void TuningTable::check(const DeviceInfo& device, const Registry& registry) const {
  const auto of_device = devices_.find(device.name);
  if (of_device == devices_.end()) return;
  std::map<std::string, const Variant*> known;
  for (const Variant& variant : registry.variants())
    if (variant.device == device.kind && !variant.configurations.empty()) known[key_of(variant)] = &variant;
  std::vector<std::string> names;
  for (const auto& [name, variant] : known) names.push_back(name);
  const std::string place = source_ + ": /devices" + pointer_step(device.name);
  for (const auto& [name, of_variant] : of_device->second) {
    const auto variant = known.find(name);
    if (variant == known.end())
      throw InputError(fmt::format("{}{}: no variant with configurations{}", place, pointer_step(name),
                                   advice(name, names)));
    const std::vector<std::string>& configurations = variant->second->configurations;
    for (const auto& [shape, configuration] : of_variant)
      if (std::ranges::find(configurations, configuration) == configurations.end())
        throw InputError(fmt::format("{}{}{}: unknown configuration \"{}\"; want one of {}", place,
                                     pointer_step(name), pointer_step(to_string(shape)), configuration,
                                     fmt::join(configurations, ", ")));
  }
}

std::string TuningTable::to_json() const {
  nlohmann::ordered_json document;
  if (!schema_.empty()) document["$schema"] = schema_;
  if (!why_.empty()) document["why"] = why_;
  auto& devices = document["devices"] = nlohmann::ordered_json::object();
  for (const auto& [device, of_device] : devices_)
    for (const auto& [variant, of_variant] : of_device)
      for (const auto& [shape, configuration] : of_variant)
        devices[device][variant][to_string(shape)] = configuration;
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace convmish
