// How a variant of the mma.sync family makes its plan.
#pragma once

#include <algorithm>
#include <climits>
#include <optional>
#include <string>

#include "core/variant.hpp"
#include "gpu/check.hpp"
#include "variants/common/configurations.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_plan.cuh"
#include "variants/common/hopper_repack.cuh"
#include "variants/common/mma_ahead.cuh"

namespace convmish::mma {

inline constexpr int kFewestSlots = 2;  // of a ring: one in use, one being filled

/// Of the filter, for a block of output channels.
inline std::int64_t all_slots(const Shape& shape) {
  return divide_up(shape.c, kStepC) * kFilterSize;
}

/// Slots of the filter that fit in shared memory beside the stages.
template <class C, bool kStaged>
std::int64_t fitting_slots(const DeviceInfo& device) {
  constexpr std::int64_t none = shared_bytes<C, kStaged>(0), one = shared_bytes<C, kStaged>(1);
  return (device.max_shared_bytes - none) / (one - none);
}

/// Stages that fit beside all slots of the filter, where x is packed ahead.
template <class C>
std::int64_t fitting_stages(const DeviceInfo& device, std::int64_t slots) {
  return (device.max_shared_bytes - shared_bytes_ahead<C>(0, slots)) / shared_bytes_ahead<C>(1, 0);
}

/// How the units of a shape are shared out. A thread block stays with its output channels.
struct Division {
  std::int64_t strips, row_units;  // units of an image side by side, and one below the other
  std::int64_t k_tiles, parts;     // thread blocks: `parts` for each of the blocks of output channels

  template <class C>
  static Division of(const Shape& shape, const DeviceInfo& device) {
    Division division{.strips = divide_up(shape.q(), C::kTileColumns),
                      .row_units = divide_up(shape.p(), C::kUnitRows),
                      .k_tiles = divide_up(shape.k, C::kTileK),
                      .parts = 0};
    division.parts =
        std::clamp<std::int64_t>(device.multiprocessors / division.k_tiles, 1, division.units(shape));
    return division;
  }
  std::int64_t units(const Shape& shape) const { return shape.n * row_units * strips; }
};

/// Whether groups have tiles enough to take turns, at their epilogues or, with two terms, at the
/// multiplications: that takes longer to begin. With 8 tiles a group it was measured to be faster, with 4
/// slower.
template <class C>
bool takes_turns(const Shape& shape, const DeviceInfo& device) {
  constexpr int kFewestTurns = 6;
  const Division division = Division::of<C>(shape, device);
  return division.units(shape) >= kFewestTurns * division.parts;
}

/// One term: whether x passes through shared memory on its way to the stages.
template <class C>
bool stages_x(const Shape& shape, const DeviceInfo& device) {
  return C::kTerms == 1 && all_slots(shape) <= fitting_slots<C, true>(device) &&
         takes_turns<C>(shape, device);
}

/// Two terms: whether x is packed ahead. Sums are then never promoted.
template <class C>
bool packs_ahead(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t steps = divide_up(shape.c, kStepC);
  return C::kTerms == 2 && steps <= kPromotionSteps &&
         StageCircle<C>::suffices(fitting_stages<C>(device, all_slots(shape)), steps) &&
         takes_turns<C>(shape, device);
}

template <class C>
Plan prepare_config(const Problem& problem) {
  const Shape& shape = problem.shape;
  const FilterLayout<C> layout(shape);
  const hopper::PackedFilter packed = hopper::repack(problem, layout);
  Args args = hopper::common_args<Args>(shape, packed);
  const Division division = Division::of<C>(shape, *problem.device);
  args.by_strips = FastDividerOf(static_cast<int>(division.strips));
  args.by_row_units = FastDividerOf(static_cast<int>(division.row_units));
  args.k_tiles = static_cast<int>(division.k_tiles);
  args.parts = static_cast<int>(division.parts);
  args.units = static_cast<int>(division.units(shape));
  args.plane = shape.h * shape.w;
  args.steps = layout.steps;
  constexpr int kMostSlots = 12;  // of a ring: more would only add to the distance
  const std::int64_t slots = all_slots(shape), fitting = fitting_slots<C, false>(*problem.device);
  const bool resident = slots <= fitting, staged = stages_x<C>(shape, *problem.device);
  args.slots = static_cast<int>(resident ? slots : std::min<std::int64_t>(fitting, kMostSlots));

  const unsigned blocks = static_cast<unsigned>(args.parts) * static_cast<unsigned>(args.k_tiles);
  if (C::kTerms == 2 && args.steps > kPromotionSteps)
    args.promoted = static_cast<float4*>(
        problem.memory->allocate(std::size_t{blocks} * promoted_vectors<C>() * sizeof(float4)));

  const bool even = shape.q() % 2 == 0;
  const std::string tiles = "tiles of " + std::to_string(C::kTileK) + " channels x " +
                            std::to_string(C::kTileRows) + " rows x " + std::to_string(C::kTileColumns) +
                            " columns, ";
  if constexpr (C::kTerms == 2) {
    if (packs_ahead<C>(shape, *problem.device)) {
      const std::int64_t stages = fitting_stages<C>(*problem.device, slots);
      args.stages = static_cast<int>(std::min<std::int64_t>(stages, C::kGroups * args.steps));
      const auto kernel = even ? kernel_ahead<C, true> : kernel_ahead<C, false>;
      const auto bytes = static_cast<std::size_t>(shared_bytes_ahead<C>(args.stages, slots));
      hopper::allow_shared_memory(kernel, bytes);
      const UnitsAhead<C> units{{args}};
      Plan plan = hopper::make_plan<C::kTerms, Args, UnitsAhead<C>>(
          problem, args, kernel, bytes, C::kThreads, blocks, 1, units.count() * units.flag_count(), packed);
      plan.note += tiles + "filter resident, x packed ahead";
      return plan;
    }
  }

  auto kernel = resident ? (even ? mma::kernel<C, true, false, true> : mma::kernel<C, true, false, false>)
                         : (even ? mma::kernel<C, false, false, true> : mma::kernel<C, false, false, false>);
  if constexpr (C::kTerms == 1)
    if (staged) kernel = even ? mma::kernel<C, true, true, true> : mma::kernel<C, true, true, false>;
  const auto bytes = static_cast<std::size_t>(staged ? shared_bytes<C, true>(args.slots)
                                                     : shared_bytes<C, false>(args.slots));
  hopper::allow_shared_memory(kernel, bytes);
  const Units<C> units{args};
  Plan plan = hopper::make_plan<C::kTerms, Args, Units<C>>(problem, args, kernel, bytes, C::kThreads, blocks,
                                                           1, units.count() * units.flag_count(), packed);
  plan.note += tiles + (staged     ? "filter resident, x staged"
                        : resident ? "filter resident"
                                   : std::to_string(args.slots) + " filter slots");
  return plan;
}

/// The unit and the warps that share it out.
template <class C>
std::string name() {
  return std::to_string(C::kUnitRows) + "x" + std::to_string(C::kTileColumns) + "x" +
         std::to_string(C::kTileK) + "w" + std::to_string(C::kThreads / 32);
}

/// What a multiprocessor computes, outputs that do not exist included; nothing where the shared memory does
/// not suffice.
template <class C>
std::optional<double> computed_outputs(const Shape& shape, const DeviceInfo& device) {
  if (fitting_slots<C, false>(device) < std::min<std::int64_t>(kFewestSlots, all_slots(shape)))
    return std::nullopt;
  const Division division = Division::of<C>(shape, device);
  const std::int64_t blocks = division.parts * division.k_tiles;
  return static_cast<double>(divide_up(blocks, device.multiprocessors)) *
         static_cast<double>(divide_up(division.units(shape), division.parts)) *
         (C::kUnitRows * C::kTileColumns * C::kTileK);
}

/// What why_unsupported() counts units by.
inline constexpr int kLeastUnitRows = 4, kLeastUnitColumns = 16;

/// Times per output where all multiprocessors are full, relative to the fastest, as an H200 takes them.
struct TimePerOutput {
  double in_turns, otherwise;  // in turns: with x staged, or packed ahead
};

template <int kTerms, Tiling kTiling>
Configuration configuration(TimePerOutput time) {
  using C = Config<kTerms, kTiling>;
  static_assert(C::kUnitRows >= kLeastUnitRows && C::kTileColumns >= kLeastUnitColumns);
  static_assert(shared_bytes<C, true>(0) >= shared_bytes<C, false>(0), "staged implies resident");
  return {.name = name<C>(),
          .cost = [=](const Shape& shape, const DeviceInfo& device) -> std::optional<double> {
            const auto outputs = computed_outputs<C>(shape, device);
            if (!outputs) return std::nullopt;
            const bool in_turns = stages_x<C>(shape, device) || packs_ahead<C>(shape, device);
            return (in_turns ? time.in_turns : time.otherwise) * *outputs;
          },
          .prepare = prepare_config<C>};
}

inline std::optional<std::string> why_unsupported(const Shape& shape, const DeviceInfo&) {
  if (auto why = hopper::why_too_large(shape)) return why;
  constexpr std::int64_t kLimit = INT_MAX / 2;  // of units
  if (shape.n * divide_up(shape.p(), kLeastUnitRows) * divide_up(shape.q(), kLeastUnitColumns) > kLimit)
    return "there are more than " + std::to_string(kLimit) + " tiles";
  return std::nullopt;
}

}  // namespace convmish::mma
