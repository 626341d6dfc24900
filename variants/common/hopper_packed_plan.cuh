// How a variant plans the packed kernel for a shape: which of its tiles, on how many thread blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "variants/common/divide_up.hpp"
#include "variants/common/hopper_packed.cuh"
#include "variants/common/hopper_plan.cuh"

namespace convmish::hopper::packed {

inline constexpr std::int64_t kSharedLimit = 232448;   // B: sm_90 opt-in limit
inline constexpr int kLargestSpan = 2 * 128 / 8 * 10;  // pixels of a tile, at most

/// One of the kernel's instantiations.
struct Kernel {
  int pixels, consumers, threads;
  std::int64_t filter_stage_bytes, other_bytes;  // of shared memory; the latter whatever the stages
  void (*function)(Args);
};
template <class C>
Kernel kernel_of() {
  return {C::kPixels, C::kConsumers, C::kThreads, C::kFilterStageBytes, SharedStorage<C>::bytes(0, 0, 0),
          kernel<C>};
}

/// A way to compute a shape.
struct Choice {
  Kernel kernel;
  Tiling tiling;
  int x_stages = 0, filter_stages = 0;
  std::int64_t x_stage_bytes = 0, parts = 0;
  bool resident = false;
  double cycles = 0;  // expected, of the busiest multiprocessor
};

/// Tiles in groups of images: all, one, or as many as a tile holds; whichever makes fewest tiles.
inline void group_images(const Shape& shape, int tile_pixels, Tiling& tiling) {
  const std::int64_t span = tiling.span(tile_pixels), image = shape.h * shape.w, halo = 2 * shape.w + 2;
  tiling.pixel_tiles = INT64_MAX;
  for (const std::int64_t images : {shape.n, std::int64_t{1}, std::min((span + halo) / image, shape.n)}) {
    if (images == 0) continue;
    // The last output's pixel is the group's last but the halo. A tile of rows has whole rows only.
    const std::int64_t used = images * image - (tiling.pitch == 8 ? halo : 2 * shape.w);
    const std::int64_t group_tiles = divide_up(used, span), tiles = divide_up(shape.n, images) * group_tiles;
    if (tiles < tiling.pixel_tiles)
      tiling.pixel_tiles = tiles, tiling.group_tiles = group_tiles, tiling.group_pixels = images * image;
  }
}

/// Fills in stages as shared memory allows; false if it does not.
inline bool allot_stages(Choice& choice, int c_slices) {
  const std::int64_t room = kSharedLimit - choice.kernel.other_bytes,
                     filter = choice.kernel.filter_stage_bytes, x = choice.x_stage_bytes;
  constexpr int kEnough = 3;  // stages of x beside a resident filter
  choice.resident = c_slices <= kMaxStages && c_slices * filter + kEnough * x <= room;
  if (choice.resident) {
    choice.filter_stages = c_slices;
    choice.x_stages = static_cast<int>(std::min<std::int64_t>(kMaxStages, (room - c_slices * filter) / x));
  } else {
    choice.x_stages = choice.filter_stages =
        static_cast<int>(std::min<std::int64_t>(kMaxStages, room / (filter + x)));
  }
  return choice.x_stages >= 2;
}

/// What a choice is expected to take. The rates are those that fit what was measured on an H200 best.
inline double expected_cycles(const Choice& choice, const Shape& shape, int terms, int multiprocessors) {
  constexpr double kCopyBytes = 40;                             // a cycle, where the filter is streamed
  constexpr double kStartCycles = 1900;                         // to a thread block's first slice
  constexpr double kBusyCycles = 970, kBusyPixelCycles = 23.3;  // of a tile, beside those of other teams
  const double hand_over_cycles = terms == 1 ? 900 : 1400;      // from one tile's products to the next one's
  const int c_slices = slices(static_cast<int>(shape.c)), products = terms == 1 ? 1 : 3,
            together = choice.tiling.together, teams = choice.kernel.consumers / together;
  const double pixels = choice.kernel.pixels,
               slice_bytes = static_cast<double>(choice.x_stage_bytes) +
                             (choice.resident ? 0 : static_cast<double>(choice.kernel.filter_stage_bytes));
  const auto rounds =
      static_cast<double>(divide_up(choice.parts * divide_up(shape.k, kBlockK), multiprocessors));
  const auto tiles = static_cast<double>(divide_up(choice.tiling.pixel_tiles, choice.parts));
  const double multiply =
      c_slices * std::max(kTaps * products * together * pixels / 2, slice_bytes / kCopyBytes) +
      hand_over_cycles;
  const double epilogue = (together == 1 ? 30 : 40) * pixels;  // beside nothing else
  const double all_tiles =
      teams > 1 ? tiles * std::max(multiply, together * (kBusyCycles + kBusyPixelCycles * pixels)) + epilogue
                : tiles * (multiply + epilogue);
  return rounds * (kStartCycles + all_tiles);
}

/// The best choice among `kernels`, all of kTerms terms.
template <int kTerms>
Choice choose(const Shape& shape, const std::vector<Kernel>& kernels, int multiprocessors) {
  Choice best;
  best.cycles = 1e300;
  const int c_slices = slices(static_cast<int>(shape.c));
  const std::int64_t k_tiles = divide_up(shape.k, kBlockK), width = shape.w;
  std::vector<int> pitches{8};
  if (shape.q() <= 8 && width > 8) pitches.push_back(static_cast<int>(width));
  for (const Kernel& kernel : kernels)
    for (const int together : {1, 2})
      for (const int pitch : pitches) {
        Choice choice{.kernel = kernel};
        Tiling& tiling = choice.tiling;
        tiling.together = together, tiling.pitch = pitch;
        const std::int64_t reach =
            std::int64_t{together * kernel.pixels / 8 - 1} * pitch + 8 + kFilterSize - 1;
        tiling.runs = width <= reach ? 1 : kFilterSize;
        tiling.run_pixels = static_cast<int>(reach + (tiling.runs == 1 ? 2 * width : 0));
        choice.x_stage_bytes =
            std::int64_t{kTerms} * kSlicePlanes * tiling.runs * tiling.run_pixels * kGranuleBytes;
        group_images(shape, kernel.pixels, tiling);
        if (!allot_stages(choice, c_slices)) continue;
        choice.parts = std::clamp<std::int64_t>(multiprocessors / k_tiles, 1, tiling.pixel_tiles);
        choice.cycles = expected_cycles(choice, shape, kTerms, multiprocessors);
        if (choice.cycles < best.cycles) best = choice;
      }
  return best;
}

/// kPixels: the tiles' sizes.
template <int kTerms, int... kPixels>
Plan prepare(const Problem& problem) {
  const Shape& shape = problem.shape;
  const PackedFilter filter = repack(problem, SliceLayout<kTerms>(shape));
  const Choice choice =
      choose<kTerms>(shape, {kernel_of<Config<kTerms, kPixels>>()...}, problem.device->multiprocessors);

  Args args{};
  Planes& planes = args.planes;
  planes.n = static_cast<int>(shape.n), planes.c = static_cast<int>(shape.c);
  planes.h = static_cast<int>(shape.h), planes.w = static_cast<int>(shape.w);
  planes.tail_runs = static_cast<int>(divide_up(2 * shape.w + 2 + kLargestSpan, std::int64_t{kRunPixels}));
  planes.by_image = FastDivider(shape.h * shape.w);
  args.filter = filter.halves, args.affine = filter.affine;
  args.k = static_cast<int>(shape.k), args.p = static_cast<int>(shape.p());
  args.q = static_cast<int>(shape.q());
  args.tiling = choice.tiling;
  args.k_tiles = static_cast<int>(divide_up(shape.k, std::int64_t{kBlockK}));
  args.parts = static_cast<int>(choice.parts);
  args.part_tiles = static_cast<int>(choice.tiling.pixel_tiles / choice.parts);
  args.longer_parts = static_cast<int>(choice.tiling.pixel_tiles % choice.parts);
  args.resident = choice.resident;
  args.x_stages = choice.x_stages, args.filter_stages = choice.filter_stages;
  args.x_stage_bytes = static_cast<int>(choice.x_stage_bytes);
  args.by_w = FastDivider(shape.w), args.by_h = FastDivider(shape.h);
  args.by_group_tiles = FastDivider(choice.tiling.group_tiles);

  const std::size_t shared_bytes =
      static_cast<std::size_t>(choice.kernel.other_bytes + choice.x_stages * choice.x_stage_bytes +
                               choice.filter_stages * choice.kernel.filter_stage_bytes);
  allow_shared_memory(choice.kernel.function, shared_bytes);
  const Launch<Args> main{choice.kernel.function, static_cast<unsigned>(args.parts * args.k_tiles),
                          choice.kernel.threads, 1, shared_bytes};
  const std::int64_t granule_bytes = kTerms * planes.term_pixels() * kGranuleBytes;

  Plan plan = make_plan(problem, filter, geometry(main), granule_bytes + planes.flags(),
                        [=](const LaunchArgs& launch, const RecomputeArgs& again) mutable {
                          args.planes.granules = static_cast<uint4*>(launch.workspace);
                          args.planes.raised = static_cast<std::uint8_t*>(launch.workspace) + granule_bytes;
                          args.again = again;
                          pack<kTerms>(launch.x, args.planes, launch.stream);
                          launch_after_start(main.kernel, main.blocks, main.threads, main.shared_bytes,
                                             main.cluster, launch.stream, args);
                        });
  plan.note += "packed, tiles of 64 channels x " +
               std::to_string(choice.kernel.pixels * choice.tiling.together) + " pixels, " +
               (choice.resident ? "filter kept" : "filter streamed");
  return plan;
}

}  // namespace convmish::hopper::packed
