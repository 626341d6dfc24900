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

/// The operands of one output, drawn on the host; products lie in the order c r s.
struct Operands {
  std::vector<float> x, filter;
  float bias = 0;
};

/// Draws operands anew: on the host, output by output, for shapes of any size.
class OperandSource {
 public:
  OperandSource(const FillSpec& x, const std::optional<ChangedElement>& changed_element,
                const FillSpec& weights)
      : x_(x), changed_element_(changed_element), weights_(weights) {}

  const Shape& shape() const { return x_.shape; }
  Operands operands(const Chunk::At& at) const;
  std::vector<float> x_window(const Chunk::At& at) const { return x_window(x_, changed_element_, at); }
  /// That of an x of another seed, or of the same before its row was changed.
  std::vector<float> x_window(std::uint64_t seed, const Chunk::At& at) const;
  float bias(std::int64_t k) const { return draw(weights_, Tensor::bias, k); }
  std::uint64_t seed() const { return x_.seed; }

 private:
  static std::vector<float> x_window(const FillSpec& spec,
                                     const std::optional<ChangedElement>& changed_element,
                                     const Chunk::At& at);

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
