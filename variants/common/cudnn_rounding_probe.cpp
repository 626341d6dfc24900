#include "variants/common/cudnn_rounding_probe.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/error.hpp"

namespace convmish {
namespace {

constexpr int kByte = 0x3f;  // of the probe's float, all four: cudaMemset writes bytes
constexpr float kMultiplicand = std::bit_cast<float>(0x3f3f3f3fu);  // 0.747

// Rounded to the nearest, the two multiplicands raise z by 3.1e-5 of itself; one that is truncated lowers it
// by 6.2e-4. Mish changes neither by more than half.
constexpr double kTruncated = 3e-4;

DeviceMemory floats(std::int64_t elements, int byte, Stream stream) {
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(elements);
  DeviceMemory memory = allocate_device_memory(bytes);
  if (!memory) {
    std::size_t free_bytes = 0, total_bytes = 0;
    CONVMISH_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw OutOfMemory(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(free_bytes));
  }
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(memory.get(), byte, bytes, stream));
  return memory;
}

double mish(double x) {
  return x * std::tanh(std::log1p(std::exp(x)));
}

double epilogue_of(ConvolutionEpilogue epilogue, double z) {
  switch (epilogue) {
    case ConvolutionEpilogue::none:
    case ConvolutionEpilogue::bias:
      break;
    case ConvolutionEpilogue::bias_mish_by_definition:
    case ConvolutionEpilogue::bias_mish_by_exp:
      return mish(mish(z));
  }
  return z;
}

}  // namespace

RoundingProbe::RoundingProbe(const Shape& shape, ConvolutionEpilogue epilogue, Stream stream)
    : epilogue_(epilogue),
      stream_(stream),
      x_(floats(shape.x_elements(), kByte, stream)),
      filter_(floats(shape.filter_elements(), 0, stream)),
      bias_(floats(shape.k, 0, stream)) {
  // The first tap of the first channel comes first in either layout.
  const std::size_t pitch = sizeof(float) * static_cast<std::size_t>(shape.reduction());
  CONVMISH_CHECK_CUDA(cudaMemset2DAsync(filter_.get(), pitch, kByte, sizeof(float),
                                        static_cast<std::size_t>(shape.k), stream));
}

ConvolutionOperands RoundingProbe::operands(float* y, void* workspace) const {
  return {static_cast<const float*>(x_.get()), static_cast<const float*>(filter_.get()),
          static_cast<const float*>(bias_.get()), y, workspace};
}

bool RoundingProbe::truncates(const float* y) const {
  float first = 0;  // one output tells: a plan treats all alike
  CONVMISH_CHECK_CUDA(cudaMemcpyAsync(&first, y, sizeof first, cudaMemcpyDeviceToHost, stream_));
  CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream_));
  const double exact = epilogue_of(epilogue_, double{kMultiplicand} * double{kMultiplicand});
  return double{first} < (1 - kTruncated) * exact;
}

}  // namespace convmish
