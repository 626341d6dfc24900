#include "run/mistakes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "check/acceptance.hpp"
#include "check/multiplicand.hpp"

namespace convmish {
namespace {

using Sums = std::optional<PreActivation>;

PreActivation biased(PreActivation sums, float bias) {
  return {sums.z + static_cast<double>(bias), sums.s + std::fabs(static_cast<double>(bias))};
}

/// Sum over the taps of `channels` input channels; tap t of the window meets tap filter_tap(t), or none where
/// that is negative.
template <class FilterTap>
PreActivation sum_taps(const std::vector<float>& x, const std::vector<float>& filter, std::size_t channels,
                       FilterTap filter_tap) {
  PreActivation sums;
  for (std::size_t c = 0; c < channels; ++c)
    for (int tap = 0; tap < kTaps; ++tap) {
      const int other = filter_tap(tap);
      if (other < 0) continue;
      const std::size_t from = c * kTaps;
      const double product = static_cast<double>(x[from + static_cast<std::size_t>(tap)]) *
                             static_cast<double>(filter[from + static_cast<std::size_t>(other)]);
      sums.z += product;
      sums.s += std::fabs(product);
    }
  return sums;
}

int same_tap(int tap) {
  return tap;
}

std::size_t channels_of(const Operands& operands) {
  return operands.x.size() / kTaps;
}

Sums no_mistake(const OperandSource&, const Chunk::At&, const Operands& operands) {
  return right_sums(operands);
}

// --- activations --------------------------------------------------------------------------------------

double identity(double z) {
  return z;
}
double mish_thrice(double z) {
  return mish64(activation64(z));
}
double relu_of_mish(double z) {  // and mish of ReLU: the same
  return std::fmax(mish64(z), 0);
}
double cut_tail(double z) {
  return z < -20 ? 0 : activation64(z);
}
double zero(double) {
  return 0;
}

// --- sums ---------------------------------------------------------------------------------------------

Mistake filter_taps(std::string name, int (*filter_tap)(int)) {
  return {std::move(name),
          [filter_tap](const OperandSource&, const Chunk::At&, const Operands& o) {
            return Sums(biased(sum_taps(o.x, o.filter, channels_of(o), filter_tap), o.bias));
          },
          activation64};
}

Mistake tap_left_out(int left_out) {
  return {fmt::format("tap r{} s{} left out", left_out / kFilterSize, left_out % kFilterSize),
          [left_out](const OperandSource&, const Chunk::At&, const Operands& o) {
            const auto filter_tap = [left_out](int tap) { return tap == left_out ? -1 : tap; };
            return Sums(biased(sum_taps(o.x, o.filter, channels_of(o), filter_tap), o.bias));
          },
          activation64};
}

Mistake first_channels_only(std::string name, std::int64_t channels) {
  return {
      std::move(name),
      [channels](const OperandSource&, const Chunk::At&, const Operands& o) {
        return Sums(biased(sum_taps(o.x, o.filter, static_cast<std::size_t>(channels), same_tap), o.bias));
      },
      activation64};
}

/// The bias times `times`.
Mistake bias_times(std::string name, float times) {
  return {std::move(name),
          [times](const OperandSource&, const Chunk::At&, const Operands& o) {
            return Sums(biased(sum_taps(o.x, o.filter, channels_of(o), same_tap), times * o.bias));
          },
          activation64};
}

Mistake bias_of_channel(std::string name, int step) {
  return {std::move(name),
          [step](const OperandSource& source, const Chunk::At& at, const Operands& o) -> Sums {
            const std::int64_t k =
                at.k + step;  // what the first or the last channel then takes is anyone's guess
            if (k < 0 || k >= source.shape().k) return std::nullopt;
            return biased(sum_taps(o.x, o.filter, channels_of(o), same_tap), source.bias(k));
          },
          activation64};
}

Mistake x_of_image(std::string name, int step) {
  return {std::move(name),
          [step](const OperandSource& source, Chunk::At at, const Operands& o) -> Sums {
            at.n += step;
            if (at.n < 0 || at.n >= source.shape().n) return std::nullopt;
            return biased(sum_taps(source.x_window(at), o.filter, channels_of(o), same_tap), o.bias);
          },
          activation64};
}

/// The output of what an earlier launch was given: timed launches take turns with x of two seeds that follow
/// one another, and a row of one is changed for the last launch.
Mistake x_of_earlier_launch(std::int64_t seed_step) {
  return {"the output of an earlier input",
          [seed_step](const OperandSource& source, const Chunk::At& at, const Operands& o) -> Sums {
            const auto x = source.earlier_x_window(seed_step, at);
            if (!x) return std::nullopt;
            return biased(sum_taps(*x, o.filter, channels_of(o), same_tap), o.bias);
          },
          activation64};
}

// --- rounding -----------------------------------------------------------------------------------------

Mistake rounded_multiplicands(std::string name, Multiplicands to) {
  return {std::move(name),
          [to](const OperandSource&, const Chunk::At&, const Operands& operands) {
            Operands rounded = operands;
            for (auto* const values : {&rounded.x, &rounded.filter})
              for (float& value : *values) value = round_multiplicand(to, value);
            return Sums(right_sums(rounded));
          },
          activation64};
}

/// Multiplicands and, after each product, the sum in fp16; in the order c r s, the bias last.
Sums fp16_accumulation(const OperandSource&, const Chunk::At&, const Operands& o) {
  const auto fp16 = [](double value) {
    return static_cast<double>(round_multiplicand(Multiplicands::fp16, static_cast<float>(value)));
  };
  double z = 0;
  for (std::size_t i = 0; i < o.x.size(); ++i)
    z = fp16(z + fp16(static_cast<double>(o.x[i])) * fp16(static_cast<double>(o.filter[i])));
  return biased({z, right_sums(o).s}, o.bias);
}

}  // namespace

Operands OperandSource::operands(const Chunk::At& at) const {
  Operands o{.x = x_window(at), .filter = {}, .bias = bias(at.k)};
  const std::int64_t reduction = shape_.reduction();
  for (std::int64_t i = 0; i < reduction; ++i)
    o.filter.push_back(element(Tensor::filter, at.k * reduction + i));
  return o;
}

std::vector<float> OperandSource::x_window(const Chunk::At& at) const {
  std::vector<float> window;
  for (std::int64_t c = 0; c < shape_.c; ++c)
    for (int tap = 0; tap < kTaps; ++tap) {
      const std::int64_t row = at.p + tap / kFilterSize, column = at.q + tap % kFilterSize;
      window.push_back(element(Tensor::x, ((at.n * shape_.c + c) * shape_.h + row) * shape_.w + column));
    }
  return window;
}

std::optional<std::vector<float>> DrawnOperands::earlier_x_window(std::int64_t seed_step,
                                                                  const Chunk::At& at) const {
  FillSpec earlier = x_;
  earlier.seed += static_cast<std::uint64_t>(seed_step);
  return DrawnOperands(earlier, std::nullopt, weights_).x_window(at);
}

float DrawnOperands::element(Tensor tensor, std::int64_t i) const {
  if (tensor != Tensor::x) return draw(weights_, tensor, i);
  if (changed_element_ && changed_element_->index == i) return changed_element_->value;
  return draw(x_, tensor, i);
}

PreActivation right_sums(const Operands& o) {
  return biased(sum_taps(o.x, o.filter, channels_of(o), same_tap), o.bias);
}

std::vector<Mistake> known_mistakes(const Shape& shape) {
  std::vector<Mistake> mistakes{
      bias_times("bias left out", 0),
      bias_times("bias added twice", 2),
      {"one Mish only", no_mistake, mish64},
      {"three Mishes", no_mistake, mish_thrice},
      {"no activation", no_mistake, identity},
      {"ReLU for one Mish", no_mistake, relu_of_mish},
      {"0 below z = -20", no_mistake, cut_tail},
      {"nothing but zeros", no_mistake, zero},
      filter_taps("r and s swapped",
                  [](int tap) { return tap % kFilterSize * kFilterSize + tap / kFilterSize; }),
      filter_taps("filter flipped", [](int tap) { return kTaps - 1 - tap; }),
      bias_of_channel("bias of channel k-1", -1),
      bias_of_channel("bias of channel k+1", 1),
      x_of_image("x of the previous image", -1),
      x_of_image("x of the next image", 1),
      x_of_earlier_launch(0),
      x_of_earlier_launch(-1),
      x_of_earlier_launch(1),
      // The two roundings differ at ties only, but those are not rare among 24-bit uniforms.
      rounded_multiplicands("TF32 multiplicands", Multiplicands::tf32),
      rounded_multiplicands("TF32 multiplicands", Multiplicands::tf32_even),
      rounded_multiplicands("fp16 multiplicands", Multiplicands::fp16),
      rounded_multiplicands("TF32 multiplicands, truncated", Multiplicands::tf32_truncated),
      rounded_multiplicands("bf16 multiplicands", Multiplicands::bf16),
      {"fp16 accumulation", fp16_accumulation, activation64},
  };
  for (int tap = 0; tap < kTaps; ++tap) mistakes.push_back(tap_left_out(tap));
  std::int64_t told = 0;  // a tail, already: 65 channels have one of 1 by any block
  for (const std::int64_t block : {8, 16, 32, 64}) {
    const std::int64_t tail = shape.c % block;
    if (tail == 0 || tail == shape.c || tail == told) continue;
    mistakes.push_back(first_channels_only(
        fmt::format("the last {} of {} input channels left out (c mod {})", tail, shape.c, block),
        shape.c - tail));
    told = tail;
  }
  if (shape.c > 1 && shape.c % 8 != 1)
    mistakes.push_back(first_channels_only("the last input channel left out", shape.c - 1));
  return mistakes;
}

}  // namespace convmish
