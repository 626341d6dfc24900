// Known mistakes of kernels of this operation, as predictions of what they would have put out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/fill.hpp"
#include "check/tensor_view.hpp"
#include "run/inputs.hpp"

namespace convmish {

/// z and S of an output, or of what a mistake makes of them.
struct PreActivation {
  double z = 0, s = 0;
};

/// The operands of one output; products lie in the order c r s.
struct Operands {
  std::vector<float> x, filter;
  float bias = 0;
};

/// Where the operands of an output come from, output by output, for shapes of any size.
class OperandSource {
 public:
  explicit OperandSource(const Shape& shape) : shape_(shape) {}
  virtual ~OperandSource() = default;

  const Shape& shape() const { return shape_; }
  Operands operands(const Chunk::At& at) const;
  std::vector<float> x_window(const Chunk::At& at) const;
  float bias(std::int64_t k) const { return element(Tensor::bias, k); }

  /// What an earlier launch may have got as x: one of a seed that is `seed_step` further, or, for 0, the same
  /// before an element was changed. Nothing where there was no earlier launch.
  virtual std::optional<std::vector<float>> earlier_x_window(std::int64_t seed_step,
                                                             const Chunk::At& at) const = 0;

 protected:
  /// Element i of a tensor, counted in logical order.
  virtual float element(Tensor tensor, std::int64_t i) const = 0;

 private:
  Shape shape_;
};

/// Draws operands anew, on the host.
class DrawnOperands final : public OperandSource {
 public:
  DrawnOperands(const FillSpec& x, const std::optional<ChangedElement>& changed_element,
                const FillSpec& weights)
      : OperandSource(x.shape), x_(x), changed_element_(changed_element), weights_(weights) {}

  std::optional<std::vector<float>> earlier_x_window(std::int64_t seed_step,
                                                     const Chunk::At& at) const override;

 protected:
  float element(Tensor tensor, std::int64_t i) const override;

 private:
  FillSpec x_;
  std::optional<ChangedElement> changed_element_;
  FillSpec weights_;
};

struct Mistake {
  std::string name;
  /// Nothing where the mistake says nothing of this output.
  std::function<std::optional<PreActivation>(const OperandSource&, const Chunk::At&, const Operands&)> sums;
  double (*activation)(double);
};

/// The sums without a mistake.
PreActivation right_sums(const Operands& operands);

/// All that can be told apart on this shape. A name may stand for several ways to make the same mistake.
std::vector<Mistake> known_mistakes(const Shape& shape);

}  // namespace convmish
