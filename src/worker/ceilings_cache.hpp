// What a device was measured to reach, kept between runs: a measurement takes a second, a run may take less.
#pragma once

#include <filesystem>

#include "core/device.hpp"

namespace convmish {

struct CeilingsCache {
  std::filesystem::path folder;  // made where it is missing; empty: nothing is kept
  bool reuse = true;             // false: measure anew, and keep that
};

/// convmish-bench's folder in $XDG_CACHE_HOME, else in ~/.cache; empty where neither can be told.
std::filesystem::path user_cache_folder();

/// All that is known of the device's ceilings: the data sheet's by its name, the measured ones from the cache
/// or measured now. The cache holds a file for each GPU, a report without cases. It counts only where GPU,
/// driver and tool (version and revision, of `tool`) are the same, and is replaced where not, or where it
/// cannot be read. A measurement with a gap is kept, and counts, only where every one by this build has that
/// gap: what closes it is then noticed. A folder that cannot be written costs the next run a second, and
/// nothing else.
DeviceCeilings look_up_ceilings(Device& device, const Environment& tool, const CeilingsCache& cache);

}  // namespace convmish
