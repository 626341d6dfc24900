// The passes between NCHW and NHWC, on the CPU device.
#include "variants/common/layout_change.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace convmish {
namespace {

/// A tensor whose elements say where they lie in n c h w order, as floats exactly.
std::vector<float> counted(std::int64_t elements) {
  std::vector<float> tensor(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i);
  return tensor;
}

TEST(LayoutChange, IsRightForEverySizeAndUndoneByTheOther) {
  for (const auto [outer, channels, pixels] : {
           std::array<std::int64_t, 3>{1, 1, 1},
           {3, 1, 40},   // both layouts the same
           {3, 40, 1},   // the same too
           {2, 3, 9},    // within a tile
           {2, 32, 64},  // whole tiles
           {2, 31, 33},  // one less, one more
           {3, 65, 100},
           {127, 5, 9},  // a filter
       }) {
    SCOPED_TRACE(testing::Message() << outer << " x " << channels << " x " << pixels);
    const auto nchw = counted(outer * channels * pixels);
    // Exactly their size, so that a sanitizer sees an access outside; NaN where nothing is written.
    std::vector<float> nhwc(nchw.size(), std::numeric_limits<float>::quiet_NaN()), back = nhwc;

    change_layout<DeviceKind::cpu>({nchw.data(), nhwc.data(), outer, channels, pixels, Layout::nhwc},
                                   nullptr);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < pixels; ++i)
          ASSERT_EQ(nhwc[static_cast<std::size_t>((o * pixels + i) * channels + c)],
                    nchw[static_cast<std::size_t>((o * channels + c) * pixels + i)])
              << "image " << o << ", channel " << c << ", pixel " << i;

    change_layout<DeviceKind::cpu>({nhwc.data(), back.data(), outer, channels, pixels, Layout::nchw},
                                   nullptr);
    EXPECT_EQ(back, nchw);
  }
}

}  // namespace
}  // namespace convmish
