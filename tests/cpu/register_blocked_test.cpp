// What register_blocked claims of itself: which tile a shape gets, and that its layouts meet in no bank.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/bank_conflicts.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "cpu/simt/access_recorder.hpp"
#include "tests/cpu/host_plan_memory.hpp"

namespace convmish {
namespace {

const Variant& register_blocked() {
  return *select_variants(Registry::instance(), DeviceKind::cpu, {"register_blocked"}).front();
}

/// The plan for a shape of zeros, and what it points to.
class Prepared {
 public:
  Prepared(const Shape& shape, const std::string& configuration)
      : x_(static_cast<std::size_t>(shape.x_elements())),
        filter_(static_cast<std::size_t>(shape.filter_elements())),
        bias_(static_cast<std::size_t>(shape.k)),
        y_(static_cast<std::size_t>(shape.y_elements())) {
    const DeviceInfo device;
    plan_ = register_blocked().prepare({.shape = shape,
                                        .filter = filter_.data(),
                                        .bias = bias_.data(),
                                        .device = &device,
                                        .memory = &memory_,
                                        .configuration = configuration});
  }

  std::vector<SharedSite> shared_sites() {
    const auto trace = simt::trace_middle_block([&] { plan_.launch({.x = x_.data(), .y = y_.data()}); });
    return convmish::shared_sites(trace.value());
  }

 private:
  HostPlanMemory memory_;
  std::vector<float> x_, filter_, bias_, y_;
  Plan plan_;
};

/// On the GPU of the sweeps that the rule was made from, with what was fastest there, and on one of another
/// size.
TEST(RegisterBlocked, TakesATileThatFillsTheMultiprocessorsAndComputesLittle) {
  struct Case {
    const char* shape;
    int multiprocessors;
    const char* tile;
  };
  for (const auto& [shape, multiprocessors, tile] : {
           Case{"n64c64h256w256k128", 132, "4x32x128"},
           Case{"n1c64h64w64k128", 132, "8x8x128"},   // larger ones leave most multiprocessors idle
           Case{"n4c64h64w64k128", 132, "4x32x128"},  // each gets one of these
           Case{"n1c64h64w64k128", 16, "4x32x128"},
           Case{"n32c512h9w9k512", 132, "8x8x128"},  // the one that is as small as an image
           Case{"n32c64h58w58k64", 132, "8x8x128"},
           Case{"n32c256h16w16k256", 132, "8x8x128"},
       }) {
    SCOPED_TRACE(shape);
    DeviceInfo device;
    device.kind = DeviceKind::cuda;
    device.multiprocessors = multiprocessors;
    EXPECT_EQ(register_blocked().preferred_configuration(parse_shape(shape), device), tile);
  }
}

TEST(RegisterBlocked, RefusesATileThatItDoesNotHave) {
  EXPECT_THROW(Prepared(parse_shape("n1c1h3w3k1"), "1x1x1"), Unsupported);
}

/// 5 channels: a whole slice and a part of one.
struct ConflictCase {
  const char* shape;
  const char* tile;
  std::int64_t warps;
  std::uint32_t x_store_bytes;
};

TEST(RegisterBlocked, MeetsNoBankTwiceInAnyTile) {
  for (const auto& [shape, tile, warps, x_store_bytes] : {
           ConflictCase{"n1c5h6w34k128", "4x32x128", 8, 4},
           ConflictCase{"n1c5h6w32k128", "4x32x128", 8, 16},
           ConflictCase{"n1c5h10w18k128", "8x16x128", 8, 4},
           ConflictCase{"n1c5h10w16k128", "8x16x128", 8, 16},
           ConflictCase{"n1c5h10w10k128", "8x8x128", 4, 4},
           ConflictCase{"n1c5h10w8k128", "8x8x128", 4, 16},
           ConflictCase{"n1c5h10w34k64", "8x32x64", 8, 4},
           ConflictCase{"n1c5h10w32k64", "8x32x64", 8, 16},
           ConflictCase{"n1c5h18w18k64", "16x16x64", 8, 4},
           ConflictCase{"n1c5h18w16k64", "16x16x64", 8, 16},
           ConflictCase{"n1c5h18w10k64", "16x8x64", 4, 4},
           ConflictCase{"n1c5h18w8k64", "16x8x64", 4, 16},
       }) {
    SCOPED_TRACE(shape);
    Prepared prepared(parse_shape(shape), tile);

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
