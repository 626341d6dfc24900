// How the inputs of a case are drawn: a pure function of (fill, seed, tensor, element index), the same
// bits on every device.
//
// Counter-based: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11), one
// block an element. No libm and no sum of products, so that neither a library nor a compiler's fused
// multiply-add can make two devices differ.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

enum class Tensor : std::uint32_t { x = 0, filter = 1, bias = 2 };

/// Everything a draw depends on; made by fill_spec(), passed to kernels by value.
struct FillSpec {
  Fill fill = Fill::kernelbench;
  std::uint64_t seed = 0;
  Shape shape;
  float scale = 1;       // 1 / sqrt(9 c): keeps the pre-activation's deviation near that of x
  float exact_unit = 1;  // `exact`: the power of two that brings integer sums to a deviation near 3
  int special_stretch =
      1024;  // `special`: elements of x of which one is a value that arithmetic treats apart
};

struct PhiloxBlock {
  std::uint32_t word[4];
};

CONVMISH_HD constexpr PhiloxBlock philox4x32_10(std::uint64_t counter_low, std::uint64_t counter_high,
                                                std::uint64_t key) {
  PhiloxBlock b{{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
                 static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)}};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t m0 = std::uint64_t{0xD2511F53u} * b.word[0];
    const std::uint64_t m1 = std::uint64_t{0xCD9E8D57u} * b.word[2];
    b = {{static_cast<std::uint32_t>(m1 >> 32) ^ b.word[1] ^ k0, static_cast<std::uint32_t>(m1),
          static_cast<std::uint32_t>(m0 >> 32) ^ b.word[3] ^ k1, static_cast<std::uint32_t>(m0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return b;
}

CONVMISH_HD inline float float_from_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// 2^e, for e in the normal range.
CONVMISH_HD inline float power_of_two(int e) {
  return float_from_bits(static_cast<std::uint32_t>(e + 127) << 23);
}

/// Uniform in [0, 1), a multiple of 2^-24.
CONVMISH_HD inline float uniform01(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Near normal, mean 0, deviation 1, within +-4.9: the sum of eight 16-bit uniforms (Irwin-Hall), which is
/// exact in integers. The factor is sqrt(12 / 8) / 2^16.
CONVMISH_HD inline float near_normal(const PhiloxBlock& b) {
  int sum = 0;
  for (const std::uint32_t word : b.word) sum += static_cast<int>((word & 0xffffu) + (word >> 16));
  return static_cast<float>(2 * sum - 8 * 65535) * (0.5f * 1.8688186e-5f);
}

/// Integer in [-limit, limit].
CONVMISH_HD inline float small_integer(std::uint32_t word, std::uint32_t limit) {
  return static_cast<float>(static_cast<int>(word % (2 * limit + 1)) - static_cast<int>(limit));
}

/// A value that arithmetic treats apart; `kind` in [0, 8), the rest of its bits from `word`.
CONVMISH_HD inline float special_value(int kind, std::uint32_t word) {
  switch (kind) {
    case 0:
      return float_from_bits(0x7fc00000u);  // NaN
    case 1:
      return float_from_bits(0x7f800000u);  // +Inf
    case 2:
      return float_from_bits(0xff800000u);  // -Inf
    case 3:
      return float_from_bits(0x80000000u);  // -0
    case 4:
      return float_from_bits(word & 0x807fffffu);  // subnormal
    case 5:
      return float_from_bits(0x7f7fffffu);  // FLT_MAX
    case 6:
      return float_from_bits(0xff7fffffu);  // -FLT_MAX
    default:
      return float_from_bits(0x00800000u | (word & 0x80000000u));  // +-FLT_MIN
  }
}

/// Element `i` of `special`: near normal but for one in each stretch of elements, anywhere in it. Eight
/// stretches hold each kind once, so that a small tensor has them all.
CONVMISH_HD inline float special_draw(const FillSpec& spec, std::uint64_t stream, std::uint64_t i,
                                      const PhiloxBlock& normal) {
  constexpr std::uint64_t kKinds = 8;
  const auto length = static_cast<std::uint64_t>(spec.special_stretch);
  const std::uint64_t stretch = i / length;
  const PhiloxBlock choice = philox4x32_10(stretch, stream + 16, spec.seed);
  if (i % length != choice.word[0] % length) return near_normal(normal);
  const std::uint32_t first_kind = philox4x32_10(stretch / kKinds, stream + 32, spec.seed).word[0];
  return special_value(static_cast<int>((first_kind + stretch) % kKinds), choice.word[1]);
}

/// Element i of the dense grid over all finite floats that `delta` feeds through the activation.
CONVMISH_HD inline float float_grid(std::int64_t i, std::int64_t count, std::uint32_t jitter) {
  const std::uint64_t step = (std::uint64_t{1} << 32) / static_cast<std::uint64_t>(count);
  const std::uint64_t at = static_cast<std::uint64_t>(i) * (step ? step : 1) + (step ? jitter % step : 0);
  auto bits = static_cast<std::uint32_t>(at);
  if ((bits & 0x7f800000u) == 0x7f800000u) bits ^= 0x00800000u;  // NaN and Inf become the binade below
  return float_from_bits(bits);
}

/// Element `i` of a tensor, i counted in the tensor's logical order: x n c h w, filter k c r s, bias k.
CONVMISH_HD inline float draw(const FillSpec& spec, Tensor tensor, std::int64_t i) {
  const auto stream = static_cast<std::uint64_t>(tensor);
  const auto counter = static_cast<std::uint64_t>(i);
  const PhiloxBlock b = philox4x32_10(counter, stream, spec.seed);
  const bool is_x = tensor == Tensor::x;
  switch (spec.fill) {
    case Fill::kernelbench:
      return is_x ? uniform01(b.word[0]) : (2.0f * uniform01(b.word[0]) - 1.0f) * spec.scale;
    case Fill::positive:
      return is_x ? uniform01(b.word[0]) : uniform01(b.word[0]) * spec.scale;
    case Fill::normal:
      return is_x ? near_normal(b) : near_normal(b) * spec.scale;
    case Fill::wide: {
      const float value = is_x ? near_normal(b) : near_normal(b) * spec.scale;
      const std::uint32_t e = philox4x32_10(counter, stream + 16, spec.seed).word[0];
      if (is_x) return value * power_of_two(static_cast<int>(e % 40) - 20);
      return tensor == Tensor::filter ? value * power_of_two(static_cast<int>(e % 16) - 16) : value;
    }
    case Fill::tails:  // deviation 20: z beyond +-80 at four deviations
      return is_x ? near_normal(b) : near_normal(b) * (20.0f * spec.scale);
    case Fill::exact:
      return is_x ? small_integer(b.word[0], 3) : small_integer(b.word[0], 2) * spec.exact_unit;
    case Fill::delta:
      if (is_x) {
        // In strides around the grid, so that each channel has all of it: with few output channels only the
        // first ones are copied. 1000003 is prime, and small enough for the product.
        const std::int64_t count = spec.shape.x_elements();
        return float_grid(i * 1000003 % count, count, b.word[0]);
      }
      if (tensor == Tensor::bias) return 0.0f;
      return i % (spec.shape.c * kTaps) == (i / (spec.shape.c * kTaps)) % spec.shape.c * kTaps + kTaps / 2
                 ? 1.0f
                 : 0.0f;
    case Fill::special:
      return is_x ? special_draw(spec, stream, counter, b) : near_normal(b) * spec.scale;
  }
  return 0.0f;
}

/// Host only: 2.0f * u - 1.0f above is exact (u has 24 bits), so no contraction can change it.
FillSpec fill_spec(Fill fill, std::uint64_t seed, const Shape& shape);

}  // namespace convmish
