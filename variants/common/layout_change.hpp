// The passes that a user with NCHW tensors pays for a convolution that wants NHWC.
#pragma once

#include "core/variant.hpp"

namespace convmish {

/// A tensor of `outer` images (or filters) of `channels` planes of `pixels` each, and the layout it gets; it
/// comes in the other one.
struct LayoutChange {
  const float* in = nullptr;
  float* out = nullptr;  // does not overlap `in`
  std::int64_t outer = 0, channels = 0, pixels = 0;
  Layout to = Layout::nhwc;
};

/// Built for each device by layout_change.cu.
template <DeviceKind kDevice>
void change_layout(const LayoutChange& change, Stream stream);

}  // namespace convmish
