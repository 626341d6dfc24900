// A variant that has several kernels compiled in, tiles say, and chooses one for each problem.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/variant.hpp"

namespace convmish {

struct Configuration {
  std::string name;
  /// About how long it takes, by the variant's rule, in a unit of the variant's own; nothing where it cannot
  /// compute the shape on the device.
  std::function<std::optional<double>(const Shape&, const DeviceInfo&)> cost;
  Plan (*prepare)(const Problem&);
};

/// The first of the cheapest.
inline const Configuration& preferred(const std::vector<Configuration>& configurations, const Shape& shape,
                                      const DeviceInfo& device) {
  const auto cost = [&](const Configuration& configuration) {
    return configuration.cost(shape, device).value_or(std::numeric_limits<double>::infinity());
  };
  const auto best = std::ranges::min_element(configurations, {}, cost);
  if (!best->cost(shape, device)) throw Unsupported("none of its configurations fits on this device");
  return *best;
}

/// A row of the registry with what follows from its configurations filled in.
inline Variant configured_variant(Variant row, std::vector<Configuration> configurations) {
  for (const Configuration& configuration : configurations) row.configurations.push_back(configuration.name);
  row.preferred_configuration = [configurations](const Shape& shape, const DeviceInfo& device) {
    return preferred(configurations, shape, device).name;
  };
  row.prepare = [configurations = std::move(configurations)](const Problem& problem) {
    if (problem.configuration.empty())
      return preferred(configurations, problem.shape, *problem.device).prepare(problem);
    const auto asked = std::ranges::find(configurations, problem.configuration, &Configuration::name);
    if (asked == configurations.end()) throw Unsupported("has no configuration " + problem.configuration);
    if (!asked->cost(problem.shape, *problem.device))
      throw Unsupported("configuration " + asked->name + " does not fit on this device");
    return asked->prepare(problem);
  };
  return row;
}

}  // namespace convmish
