// What no numerical note of a cuDNN plan tells: how it rounds its multiplicands, and whether its sums are
// clean.
//
// The hardware ignores the low 13 bits of an fp32 multiplicand, so a kernel on tensor cores that does not
// round to the nearest TF32 beforehand truncates: it errs by up to 2^-10 a multiplicand, always towards 0,
// twice what the class tf32 allows. Some of cuDNN's runtime-compiled kernels do.
//
// Sums of small integers are integers in a direct convolution of any class that adds in fp32. Of some of
// cuDNN's plans that add the bias too they are not: they are off by some 2^-17 of themselves.
#pragma once

#include <vector>

#include "core/variant.hpp"
#include "variants/common/cudnn_graph.hpp"
#include "variants/common/device_memory.hpp"

namespace convmish {

class RoundingProbe {
 public:
  /// Throws OutOfMemory.
  RoundingProbe(const Shape& shape, ConvolutionEpilogue epilogue, Stream stream);

  /// Every element of x, and of each filter the first, is one float of which the low bits are mostly ones;
  /// the other taps and the bias are 0. So each output comes of a single product. Valid until the next call.
  ConvolutionOperands single_products(float* y, void* workspace);
  /// Whether the plan that computed y from single_products() truncates. Waits for the stream.
  bool truncates(const float* y) const;

  /// Whether gives_integers() can tell: there is no activation.
  bool shows_sums() const;
  /// Small integers, of x and the filter the first ones only. Valid until the next call.
  ConvolutionOperands integers(float* y, void* workspace);
  /// Whether y, computed from integers(), holds nothing else where it was looked at. Waits for the stream.
  bool gives_integers(const float* y) const;

 private:
  ConvolutionOperands operands(float* y, void* workspace) const;

  Shape shape_;
  ConvolutionEpilogue epilogue_;
  Stream stream_;
  std::vector<float> integer_x_, integer_filter_, integer_bias_;  // outlive the copies from them
  DeviceMemory x_, filter_, bias_;
};

}  // namespace convmish
