#include "run/given_tensors.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "run/cross_check.hpp"
#include "run/mistakes.hpp"
#include "run/prepared.hpp"

namespace convmish {
namespace {

class GivenOperands final : public OperandSource {
 public:
  explicit GivenOperands(const GivenTensors& tensors) : OperandSource(tensors.shape), tensors_(tensors) {}

  std::optional<std::vector<float>> earlier_x_window(std::int64_t, const Chunk::At&) const override {
    return std::nullopt;
  }

 protected:
  float element(Tensor tensor, std::int64_t i) const override {
    const std::vector<float>& values = tensor == Tensor::x        ? tensors_.x
                                       : tensor == Tensor::filter ? tensors_.filter
                                                                  : tensors_.bias;
    return values[static_cast<std::size_t>(i)];
  }

 private:
  const GivenTensors& tensors_;
};

std::unique_ptr<Buffer> uploaded(Device& device, const std::vector<float>& values) {
  const std::size_t bytes = values.size() * sizeof(float);
  auto buffer = device.allocate(bytes);
  device.upload(buffer->data(), values.data(), bytes);
  return buffer;
}

}  // namespace

FillResult verify_tensors(Device& device, const GivenTensors& tensors, MathClass math) {
  const auto x = uploaded(device, tensors.x), filter = uploaded(device, tensors.filter),
             bias = uploaded(device, tensors.bias), y = uploaded(device, tensors.y);
  const Comparison comparison{.shape = tensors.shape,
                              .x = x->floats(),
                              .filter = filter->floats(),
                              .bias = bias->floats(),
                              .y = y->floats(),
                              .rule = acceptance_rule(math, tensors.shape, /*exact_sums=*/false)};
  // Nothing was poisoned here; no y holds that word but by a chance of one in 2^32.
  return judge_comparison(device, comparison, math, GivenOperands(tensors), kPoison);
}

FillResult verify_output(Device& device, const FillSpec& spec, const std::vector<float>& y,
                         const Computation& computation) {
  if (auto skipped = not_applicable(spec, computation.algorithm)) return *std::move(skipped);
  Inputs inputs(device, spec.fill, spec.seed, spec.shape);
  const auto uploaded_y = uploaded(device, y);
  std::vector<ReferencePoint> samples = sample_outputs(spec.shape, spec.seed);
  FillResult result =
      judge_comparison(device, comparison_of(computation, inputs, inputs, uploaded_y->floats()),
                       computation.math, DrawnOperands(spec, std::nullopt, spec), kPoison, samples);
  cross_check_reference(spec, samples);
  result.fill = spec.fill;
  result.seed = spec.seed;
  return result;
}

}  // namespace convmish
