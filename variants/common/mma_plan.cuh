// How a variant of the mma.sync family makes its plan.
#pragma once

#include <algorithm>
#include <climits>
#include <optional>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_plan.cuh"
#include "variants/common/hopper_repack.cuh"
#include "variants/common/mma_fused.cuh"

namespace convmish::mma {

inline constexpr int kFewestSlots = 2;  // of a ring: one in use, one being filled

/// Slots of the filter that fit in shared memory beside the stages.
template <class C>
std::int64_t fitting_slots(const DeviceInfo& device) {
  return (device.max_shared_bytes - shared_bytes<C>(0)) / (shared_bytes<C>(1) - shared_bytes<C>(0));
}

/// What a configuration's tiles compute for a shape, outputs that do not exist included.
template <class C>
std::int64_t computed_pixels(const Shape& shape) {
  return divide_up(shape.p(), C::kUnitRows) * C::kUnitRows * divide_up(shape.q(), C::kTileColumns) *
         C::kTileColumns;
}

template <class C>
Plan prepare_config(const Problem& problem) {
  const Shape& shape = problem.shape;
  const FilterLayout<C> layout(shape);
  const hopper::PackedFilter packed = hopper::repack(problem, layout);
  Args args = hopper::common_args<Args>(shape, packed);
  args.strips = static_cast<int>(divide_up(shape.q(), C::kTileColumns));
  args.row_units = static_cast<int>(divide_up(shape.p(), C::kUnitRows));
  args.k_tiles = layout.k_blocks;
  args.parts = static_cast<int>(
      std::clamp<std::int64_t>(problem.device->multiprocessors / args.k_tiles, 1, args.units()));
  args.steps = layout.steps;
  constexpr int kMostSlots = 12;  // of a ring: more would only add to the distance
  const std::int64_t all_slots = std::int64_t{args.steps} * kFilterSize,
                     fitting = fitting_slots<C>(*problem.device);
  const bool resident = all_slots <= fitting;
  if (!resident && fitting < kFewestSlots) throw Unsupported("needs more shared memory a thread block");
  args.slots = static_cast<int>(resident ? all_slots : std::min<std::int64_t>(fitting, kMostSlots));

  const unsigned blocks = static_cast<unsigned>(args.parts) * static_cast<unsigned>(args.k_tiles);
  if (C::kTerms == 2 && args.steps > kPromotionSteps)
    args.promoted = static_cast<float4*>(
        problem.memory->allocate(std::size_t{blocks} * promoted_vectors<C>() * sizeof(float4)));

  const bool even = shape.q() % 2 == 0;
  const auto kernel = resident ? (even ? mma::kernel<C, true, true> : mma::kernel<C, true, false>)
                               : (even ? mma::kernel<C, false, true> : mma::kernel<C, false, false>);
  const auto bytes = static_cast<std::size_t>(shared_bytes<C>(args.slots));
  hopper::allow_shared_memory(kernel, bytes);
  Plan plan =
      hopper::make_plan<C::kTerms, Args, Units<C>>(problem, args, kernel, bytes, kThreads, blocks, 1,
                                                   args.units() * kGroups * args.steps * kGroupWarps, packed);
  plan.note += "tiles of " + std::to_string(C::kTileK) + " channels x " + std::to_string(C::kTileRows) +
               " rows x " + std::to_string(C::kTileColumns) + " columns, " +
               (resident ? "filter resident" : std::to_string(args.slots) + " filter slots");
  return plan;
}

/// Wide tiles store fewer sectors in parts; narrow ones fit small images, and small shared memories, better.
template <int kTerms>
Plan prepare(const Problem& problem) {
  using Wide = Config<kTerms, 2>;
  using Narrow = Config<kTerms, 8>;
  const Shape& shape = problem.shape;
  return computed_pixels<Wide>(shape) <= computed_pixels<Narrow>(shape) &&
                 fitting_slots<Wide>(*problem.device) >= kFewestSlots
             ? prepare_config<Wide>(problem)
             : prepare_config<Narrow>(problem);
}

inline std::optional<std::string> why_unsupported(const Shape& shape, const DeviceInfo&) {
  return hopper::why_too_large(shape);
}

}  // namespace convmish::mma
