#include "variants/common/cudnn_rounding_probe.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "variants/common/integers.hpp"

namespace convmish {
namespace {

constexpr int kByte = 0x3f;  // of the probe's float, all four: cudaMemset writes bytes
constexpr float kMultiplicand = std::bit_cast<float>(0x3f3f3f3fu);  // 0.747

// Rounded to the nearest, the two multiplicands raise z by 3.1e-5 of itself; one that is truncated lowers it
// by 6.2e-4. Mish changes neither by more than half.
constexpr double kTruncated = 3e-4;

constexpr std::int64_t kMostIntegers = 1 << 20;  // of a tensor, the others being 0
constexpr std::int64_t kMostOutputs = 1 << 16;   // that are looked at

std::size_t float_bytes(std::int64_t elements) {
  return sizeof(float) * static_cast<std::size_t>(elements);
}

/// In [-limit, limit], in no order.
std::vector<float> small_integers(std::int64_t count, std::uint32_t limit) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes
    value = static_cast<float>(static_cast<int>((state >> 16) % (2 * limit + 1)) - static_cast<int>(limit));
  }
  return values;
}

DeviceMemory floats(std::int64_t elements) {
  const std::size_t bytes = float_bytes(elements);
  DeviceMemory memory = allocate_device_memory(bytes);
  if (!memory) {
    std::size_t free_bytes = 0, total_bytes = 0;
    CONVMISH_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw OutOfMemory(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(free_bytes));
  }
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
    : shape_(shape),
      epilogue_(epilogue),
      stream_(stream),
      integer_x_(small_integers(std::min(shape.x_elements(), kMostIntegers), 3)),
      integer_filter_(small_integers(std::min(shape.filter_elements(), kMostIntegers), 2)),
      integer_bias_(small_integers(shape.k, 2)),
      x_(floats(shape.x_elements())),
      filter_(floats(shape.filter_elements())),
      bias_(floats(shape.k)) {}

ConvolutionOperands RoundingProbe::operands(float* y, void* workspace) const {
  return {static_cast<const float*>(x_.get()), static_cast<const float*>(filter_.get()),
          static_cast<const float*>(bias_.get()), y, workspace};
}

ConvolutionOperands RoundingProbe::single_products(float* y, void* workspace) {
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(x_.get(), kByte, float_bytes(shape_.x_elements()), stream_));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(filter_.get(), 0, float_bytes(shape_.filter_elements()), stream_));
  // The first tap of the first channel comes first in either layout.
  CONVMISH_CHECK_CUDA(cudaMemset2DAsync(filter_.get(), float_bytes(shape_.reduction()), kByte, sizeof(float),
                                        static_cast<std::size_t>(shape_.k), stream_));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(bias_.get(), 0, float_bytes(shape_.k), stream_));
  return operands(y, workspace);
}

bool RoundingProbe::truncates(const float* y) const {
  float first = 0;  // one output tells: a plan treats all alike
  CONVMISH_CHECK_CUDA(cudaMemcpyAsync(&first, y, sizeof first, cudaMemcpyDeviceToHost, stream_));
  CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream_));
  const double exact = epilogue_of(epilogue_, double{kMultiplicand} * double{kMultiplicand});
  return double{first} < (1 - kTruncated) * exact;
}

bool RoundingProbe::shows_sums() const {
  return epilogue_ == ConvolutionEpilogue::none || epilogue_ == ConvolutionEpilogue::bias;
}

ConvolutionOperands RoundingProbe::integers(float* y, void* workspace) {
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(x_.get(), 0, float_bytes(shape_.x_elements()), stream_));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(filter_.get(), 0, float_bytes(shape_.filter_elements()), stream_));
  for (const auto& [to, values] : {std::pair{&x_, &integer_x_}, std::pair{&filter_, &integer_filter_},
                                   std::pair{&bias_, &integer_bias_}})
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(to->get(), values->data(), values->size() * sizeof(float),
                                        cudaMemcpyHostToDevice, stream_));
  return operands(y, workspace);
}

bool RoundingProbe::gives_integers(const float* y) const {
  std::vector<float> outputs(static_cast<std::size_t>(std::min(shape_.y_elements(), kMostOutputs)));
  CONVMISH_CHECK_CUDA(
      cudaMemcpyAsync(outputs.data(), y, outputs.size() * sizeof(float), cudaMemcpyDeviceToHost, stream_));
  CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream_));
  return are_integers(outputs);
}

}  // namespace convmish
