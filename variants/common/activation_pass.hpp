// The elementwise pass that follows a library's convolution: bias and Mish, one read and one write of the
// output tensor.
#pragma once

#include "core/variant.hpp"

namespace convmish {

enum class MishCount { once, twice };

struct ActivationPass {
  const float* in = nullptr;    // n k p q
  const float* bias = nullptr;  // k; null: none
  float* out = nullptr;         // n k p q; may be `in`, but not overlap it otherwise
  Shape shape;
  MishCount mish = MishCount::twice;
};

/// Puts out[n,k,p,q] = mish(in[n,k,p,q] + bias[k]), or mish of that, on `stream`. Fastest where in and out
/// are aligned to 16 bytes. Built for each device by activation_pass.cu.
template <DeviceKind kDevice>
void activate(const ActivationPass& pass, Stream stream);

}  // namespace convmish
