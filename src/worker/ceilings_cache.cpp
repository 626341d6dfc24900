#include "worker/ceilings_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>

#include "core/data_sheet.hpp"
#include "core/error.hpp"
#include "report/files.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;

/// What a measurement depends on.
auto key_of(const Environment& environment) {
  return std::tie(environment.device.uuid, environment.driver, environment.tool_version,
                  environment.git_revision);
}

bool are_rates(const Ceilings& ceilings) {
  return std::ranges::all_of(kCeilingRates, [&](auto rate) {
    const double value = (ceilings.*rate).value_or(1);
    return std::isfinite(value) && value > 0;
  });
}

/// `build_gap`: that of every measurement by this build.
bool is_worth_keeping(const MeasuredCeilings& measured, const std::string& build_gap) {
  return measured.gap.empty() || measured.gap == build_gap;
}

std::optional<DeviceCeilings> read_kept(const fs::path& file, const Environment& wanted,
                                        const std::string& build_gap) {
  try {
    const Report kept = read_report(file);
    if (key_of(kept.environment) == key_of(wanted) && kept.ceilings &&
        is_worth_keeping(kept.ceilings->measured, build_gap) && are_rates(kept.ceilings->measured.rates))
      return kept.ceilings;
  } catch (const InputError&) {  // missing, or not of this tool's making: as if there were none
  }
  return std::nullopt;
}

/// A device that cannot be measured, for want of memory say, can still be run on.
MeasuredCeilings measure(Device& device) {
  try {
    return device.measure_ceilings();
  } catch (const EnvironmentError&) {
    throw;
  } catch (const std::exception& error) {
    device.synchronize();  // throws where the device is lost
    return {.rates = {}, .gap = std::string("ceilings not measured: ") + error.what()};
  }
}

void keep(const fs::path& file, const Environment& environment, const DeviceCeilings& ceilings) {
  std::error_code ignored;  // write_file finds out
  fs::create_directories(file.parent_path(), ignored);
  try {
    write_file(file, to_json({.environment = environment, .ceilings = ceilings, .plan = {}, .cases = {}}));
  } catch (const InputError&) {
  }
}

}  // namespace

fs::path user_cache_folder() {
  const auto absolute = [](const char* variable) {
    const char* const value = std::getenv(variable);
    const fs::path path = value ? value : "";
    return path.is_absolute() ? path : fs::path();  // the XDG specification ignores a relative one
  };
  if (const fs::path cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache / kToolName;
  if (const fs::path home = absolute("HOME"); !home.empty()) return home / ".cache" / kToolName;
  return {};
}

DeviceCeilings look_up_ceilings(Device& device, const Environment& tool, const CeilingsCache& cache) {
  Environment environment = tool;
  device.describe(environment);
  environment.device = device.info();
  // Nothing tells one CPU from another.
  const bool keepable = !cache.folder.empty() && !environment.device.uuid.empty();
  const fs::path file = cache.folder / ("ceilings-" + environment.device.uuid + ".json");
  const std::string build_gap = device.ceilings_gap_of_build();

  DeviceCeilings ceilings;
  if (const auto found = keepable && cache.reuse ? read_kept(file, environment, build_gap) : std::nullopt) {
    ceilings = *found;
  } else {
    ceilings.measured = measure(device);
    if (ceilings.measured.rates.dram_bytes) ceilings.measured_at = tool.started_at;
    if (keepable && is_worth_keeping(ceilings.measured, build_gap)) keep(file, environment, ceilings);
  }
  ceilings.data_sheet = data_sheet_of(environment.device.name);
  return ceilings;
}

}  // namespace convmish
