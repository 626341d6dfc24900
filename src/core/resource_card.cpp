#include "core/resource_card.hpp"

namespace convmish {

std::optional<Occupancy> occupancy(const LaunchGeometry& geometry, const DeviceInfo& device) {
  constexpr int kWarp = 32;  // threads
  const auto blocks_at_once = geometry.blocks_per_multiprocessor;
  if (!blocks_at_once || *blocks_at_once < 1 || device.max_threads_per_multiprocessor < kWarp)
    return std::nullopt;
  const int warps = *blocks_at_once * geometry.warps();
  return Occupancy{.warps = warps,
                   .share = static_cast<double>(warps * kWarp) / device.max_threads_per_multiprocessor,
                   .waves = static_cast<double>(geometry.blocks()) /
                            (static_cast<double>(*blocks_at_once) * device.multiprocessors)};
}

}  // namespace convmish
