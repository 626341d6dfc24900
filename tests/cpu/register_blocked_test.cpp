// What register_blocked claims of itself: which tile a shape gets, and that its layouts meet in no bank.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/bank_conflicts.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "cpu/simt/access_recorder.hpp"
#include "tests/cpu/host_plan_memory.hpp"

namespace convmish {
namespace {

/// The plan for a shape of zeros, and what it points to.
class Prepared {
 public:
  explicit Prepared(const Shape& shape)
      : x_(static_cast<std::size_t>(shape.x_elements())),
        filter_(static_cast<std::size_t>(shape.filter_elements())),
        bias_(static_cast<std::size_t>(shape.k)),
        y_(static_cast<std::size_t>(shape.y_elements())) {
    const auto found = select_variants(Registry::instance(), DeviceKind::cpu, {"register_blocked"});
    plan_ = found.front()->prepare(
        {.shape = shape, .filter = filter_.data(), .bias = bias_.data(), .memory = &memory_});
  }

  const Plan& plan() const { return plan_; }
  std::vector<SharedSite> shared_sites() {
    const auto trace = simt::trace_middle_block([&] { plan_.launch({.x = x_.data(), .y = y_.data()}); });
    return convmish::shared_sites(trace.value());
  }

 private:
  HostPlanMemory memory_;
  std::vector<float> x_, filter_, bias_, y_;
  Plan plan_;
};

struct TileCase {
  const char* shape;
  const char* note;
};

TEST(RegisterBlocked, TakesTheTileThatComputesLeast) {
  for (const auto& [shape, note] : {
           TileCase{"n1c1h66w66k128", "4x32 outputs of 128 channels a block"},  // all fit: the first
           TileCase{"n1c1h66w66k192",
                    "8x32 outputs of 64 channels a block"},  // 128 would compute a third more
           TileCase{"n1c1h10w18k65", "8x16 outputs of 128 channels a block"},
           TileCase{"n1c1h3w3k128", "8x8 outputs of 128 channels a block"},
       }) {
    SCOPED_TRACE(shape);
    EXPECT_EQ(Prepared(parse_shape(shape)).plan().note, note);
  }
}

/// 5 channels: a whole slice and a part of one.
struct ConflictCase {
  TileCase tile;
  std::int64_t warps;
  std::uint32_t x_store_bytes;
};

TEST(RegisterBlocked, MeetsNoBankTwiceInAnyTile) {
  for (const auto& [tile, warps, x_store_bytes] : {
           ConflictCase{{"n1c5h6w34k128", "4x32 outputs of 128 channels a block"}, 8, 4},
           ConflictCase{{"n1c5h6w32k128", "4x32 outputs of 128 channels a block"}, 8, 16},
           ConflictCase{{"n1c5h10w18k128", "8x16 outputs of 128 channels a block"}, 8, 4},
           ConflictCase{{"n1c5h10w16k128", "8x16 outputs of 128 channels a block"}, 8, 16},
           ConflictCase{{"n1c5h10w10k128", "8x8 outputs of 128 channels a block"}, 4, 4},
           ConflictCase{{"n1c5h10w8k128", "8x8 outputs of 128 channels a block"}, 4, 16},
           ConflictCase{{"n1c5h10w34k64", "8x32 outputs of 64 channels a block"}, 8, 4},
           ConflictCase{{"n1c5h10w32k64", "8x32 outputs of 64 channels a block"}, 8, 16},
           ConflictCase{{"n1c5h18w18k64", "16x16 outputs of 64 channels a block"}, 8, 4},
           ConflictCase{{"n1c5h18w16k64", "16x16 outputs of 64 channels a block"}, 8, 16},
           ConflictCase{{"n1c5h18w10k64", "16x8 outputs of 64 channels a block"}, 4, 4},
           ConflictCase{{"n1c5h18w8k64", "16x8 outputs of 64 channels a block"}, 4, 16},
       }) {
    SCOPED_TRACE(tile.shape);
    Prepared prepared(parse_shape(tile.shape));
    ASSERT_EQ(prepared.plan().note, tile.note);

    std::int64_t load_instructions = 0, load_wavefronts = 0;
    for (const SharedSite& site : prepared.shared_sites()) {
      SCOPED_TRACE(site.array + " " + std::to_string(site.bytes));
      EXPECT_EQ(site.worst_degree, 1);
      EXPECT_EQ(site.wavefronts, site.least_wavefronts);
      if (site.kind == AccessKind::store) {
        EXPECT_EQ(site.bytes, site.array == "x" ? x_store_bytes : 16u);
      } else {
        load_instructions += site.instructions;
        load_wavefronts += site.wavefronts;
      }
    }
    // For 576 multiply-adds: 3 rows of 10 inputs, 9 taps of 8 weights; half the wavefronts of unpaired lanes.
    EXPECT_EQ(load_instructions, 5 * warps * (3 * 3 + 9 * 2));
    EXPECT_EQ(load_wavefronts, 5 * warps * (3 * (2 + 2 + 1) + 9 * (2 + 2)));
  }
}

}  // namespace
}  // namespace convmish
