// The elementwise pass that follows a library's convolution: bias and Mish, one read and one write of the
// output tensor.
#pragma once

#include "core/variant.hpp"
#include "variants/common/kernel_forms.hpp"

namespace convmish {

enum class MishCount { once, twice };

struct ActivationPass {
  const float* in = nullptr;    // n k p q
  const float* bias = nullptr;  // k; null: none
  float* out = nullptr;         // n k p q; may be `in`, but not overlap it otherwise
  Shape shape;
  MishCount mish = MishCount::twice;
};

/// What the pass is compiled for. activation_pass.cu has the list of those that exist.
struct ActivationForm {
  unsigned width = 4;  // floats a load or a store, where in and out are aligned to that
  MishForm mish = MishForm::one_exp;
  GridForm grid = GridForm::exact;
  Arithmetic arithmetic = Arithmetic::ieee;
};

/// Puts out[n,k,p,q] = mish(in[n,k,p,q] + bias[k]), or mish of that, on `stream`. Fastest where in and out
/// are aligned to 16 bytes. Built for each device by activation_pass.cu.
template <DeviceKind kDevice, ActivationForm kForm = ActivationForm{}>
void activate(const ActivationPass& pass, Stream stream);

}  // namespace convmish
