#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.hpp"
#include "core/registry.hpp"

namespace convmish {
namespace {

/// A device of this machine, or why there is none.
using DeviceOrReason = std::variant<DeviceInfo, std::string>;

template <class Open>
DeviceOrReason look(Open open) {
  try {
    return open()->info();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

/// An ordinary shape: what a variant cannot do here at all, such as load its library, it says for this one.
constexpr Shape kOrdinary{.n = 1, .c = 64, .h = 64, .w = 64, .k = 64};

std::optional<std::string> why_unavailable_here(const Variant& variant, const DeviceOrReason& device) {
  if (const auto* reason = std::get_if<std::string>(&device)) return *reason;
  const auto& info = std::get<DeviceInfo>(device);
  if (auto why = why_unavailable(variant, info)) return why;
  return variant.supports ? variant.supports(kOrdinary, info) : std::nullopt;
}

using Row = std::array<std::string, 7>;

void print_aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  for (const Row& row : rows) {
    for (std::size_t column = 0; column + 1 < row.size(); ++column)
      fmt::print("{:<{}}  ", row[column], widths[column]);
    fmt::print("{}\n", row.back());
  }
}

}  // namespace

ExitCode command_list(const DeviceFactories& devices) {
  const DeviceOrReason cpu = look(devices.cpu);
  const DeviceOrReason cuda =
      devices.cuda ? look([&] { return devices.cuda(0); }) : DeviceOrReason("this build has no CUDA");

  std::vector<Row> rows{{"variant", "class", "layout", "device", "group", "here", "summary"}};
  std::map<std::string, std::vector<std::string>> unavailable;  // reason -> variants
  for (const Variant& variant : Registry::instance().variants()) {
    if (variant.group == Group::mutant) continue;
    const auto why = why_unavailable_here(variant, variant.device == DeviceKind::cpu ? cpu : cuda);
    const std::string_view math = to_string(variant.math), layout = to_string(variant.layout),
                           device = to_string(variant.device), group = to_string(variant.group);
    rows.push_back({variant.name, std::string(math), std::string(layout), std::string(device),
                    std::string(group), why ? "no" : "yes", variant.summary});
    if (why) unavailable[*why].push_back(fmt::format("{}:{}", variant.name, math));
  }
  print_aligned(rows);

  if (!unavailable.empty()) fmt::print("\nUnavailable here\n");
  for (const auto& [why, variants] : unavailable) fmt::print("  {}: {}\n", why, fmt::join(variants, ", "));
  return ExitCode::ok;
}

}  // namespace convmish
