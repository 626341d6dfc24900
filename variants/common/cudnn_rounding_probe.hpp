// What no numerical note of a cuDNN plan tells: whether a plan on tensor cores rounds its multiplicands to
// the nearest TF32 or cuts them off. The hardware ignores the low 13 bits of an fp32 multiplicand, so a
// kernel that does not round beforehand truncates: it errs by up to 2^-10 a multiplicand, always towards 0,
// twice what the class tf32 allows. Some of cuDNN's runtime-compiled kernels do.
#pragma once

#include "core/variant.hpp"
#include "variants/common/cudnn_graph.hpp"
#include "variants/common/device_memory.hpp"

namespace convmish {

/// Inputs whose products tell. Every element of x, and of each filter the first, is one float of which the
/// low bits are mostly ones; the other taps and the bias are 0. So each output comes of a single product.
class RoundingProbe {
 public:
  /// Throws OutOfMemory.
  RoundingProbe(const Shape& shape, ConvolutionEpilogue epilogue, Stream stream);

  ConvolutionOperands operands(float* y, void* workspace) const;

  /// Whether the plan that computed y from the operands truncates. Waits for the stream.
  bool truncates(const float* y) const;

 private:
  ConvolutionEpilogue epilogue_;
  Stream stream_;
  DeviceMemory x_, filter_, bias_;
};

}  // namespace convmish
