// What a variant takes of a device for a shape: all that is known before it is timed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/bank_conflicts.hpp"
#include "core/ceiling.hpp"
#include "core/variant.hpp"

namespace convmish {

/// Why something is not known here: what may follow "not known: ".
struct NotKnown {
  std::string why;
};
template <class T>
using Known = std::variant<T, NotKnown>;

/// What a plan tells of itself.
struct PlanFacts {
  std::optional<LaunchGeometry> geometry;  // of the main kernel
  Algorithm algorithm = Algorithm::direct;
  std::int64_t workspace_bytes = 0, plan_bytes = 0;
  std::string note;
};

/// What one block of a launch does in shared memory, with a single image.
struct SharedUse {
  std::array<std::int64_t, 3> grid{}, block{};  // which of the grid's blocks
  std::size_t threads = 0;                      // of the block
  std::vector<SharedSite> sites{};              // empty where it uses none
};

struct ResourceCard {
  const Variant* variant = nullptr;
  Shape shape;
  DeviceInfo device;  // the one that is open: the variant may be for another
  Known<PlanFacts> plan{NotKnown{}};
  std::vector<Demand> demands{};  // without rates where the plan is not known
  Known<SharedUse> shared{NotKnown{"only kernels that the CPU device emulates are recorded"}};
};

/// How a launch fills a device.
struct Occupancy {
  int warps = 0;     // on a multiprocessor
  double share = 0;  // of the warps that a multiprocessor can hold
  double waves =
      0;  // times that the device is filled until all blocks have run; a fraction fills a part of it
};

/// Nothing where the geometry does not tell how many blocks a multiprocessor holds, as on the CPU.
std::optional<Occupancy> occupancy(const LaunchGeometry& geometry, const DeviceInfo& device);

}  // namespace convmish
