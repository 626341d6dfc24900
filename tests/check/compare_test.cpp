// The comparison as a whole, on the CPU device: honest results pass, each kind of wrong one is found.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "check/summary.hpp"
#include "check/tensor_view.hpp"
#include "core/device.hpp"
#include "tests/check/winograd.hpp"

namespace convmish {
namespace {

constexpr Shape kShape{.n = 2, .c = 12, .h = 11, .w = 14, .k = 6};

float to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  std::uint32_t b;
  std::memcpy(&b, &value, sizeof b);
  return float_from_bits((b + 0x0fffu + (b >> 13 & 1)) & ~0x1fffu);
}
float truncated_tf32(float value) {
  std::uint32_t b;
  std::memcpy(&b, &value, sizeof b);
  return float_from_bits(b & ~0x1fffu);
}
float to_bf16(float value) {
  std::uint32_t b;
  std::memcpy(&b, &value, sizeof b);
  return float_from_bits((b + 0x7fffu + (b >> 16 & 1)) & ~0xffffu);
}
float as_is(float value) {
  return value;
}

struct Case {
  Case(Fill fill, Layout in_layout, const Shape& of = kShape)
      : shape(of), layout(in_layout), device(make_cpu_device()), spec(fill_spec(fill, 42, of)) {
    for (const Tensor tensor : {Tensor::x, Tensor::filter, Tensor::bias}) {
      buffers.push_back(device->allocate(4 * static_cast<std::size_t>(tensor_dims(shape, tensor).count())));
      device->draw_tensor(spec, tensor, layout, buffers.back()->floats());
    }
    buffers.push_back(device->allocate(4 * static_cast<std::size_t>(shape.y_elements())));
  }

  float* x() { return buffers[0]->floats(); }
  float* y() { return buffers[3]->floats(); }
  float& y_at(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
    return y()[y_strides(layout, shape).offset(n, k, p, q)];
  }

  // A plain fp32 convolution whose multiplicands pass through `round`.
  void compute(const std::function<float(float)>& round = as_is) {
    const Strides xs = x_strides(layout, shape), ws = filter_strides(layout, shape);
    for (std::int64_t n = 0; n < shape.n; ++n)
      for (std::int64_t k = 0; k < shape.k; ++k)
        for (std::int64_t p = 0; p < shape.p(); ++p)
          for (std::int64_t q = 0; q < shape.q(); ++q) {
            float z = buffers[2]->floats()[k];
            for (std::int64_t c = 0; c < shape.c; ++c)
              for (int r = 0; r < 3; ++r)
                for (int s = 0; s < 3; ++s)
                  z += round(x()[xs.offset(n, c, p + r, q + s)]) *
                       round(buffers[1]->floats()[ws.offset(k, c, r, s)]);
            y_at(n, k, p, q) = static_cast<float>(activation64(static_cast<double>(z)));
          }
  }

  // The same by Winograd's transforms, NCHW only.
  void compute_by_winograd(const std::function<float(float)>& round = as_is) {
    const std::vector<float> z =
        convolve_by_winograd(shape, x(), buffers[1]->floats(), buffers[2]->floats(), round);
    for (std::size_t i = 0; i < z.size(); ++i)
      y()[i] = static_cast<float>(activation64(static_cast<double>(z[i])));
  }

  Comparison comparison(MathClass math = MathClass::fp32, Algorithm algorithm = Algorithm::direct) {
    return {.shape = shape,
            .x = buffers[0]->floats(),
            .filter = buffers[1]->floats(),
            .bias = buffers[2]->floats(),
            .y = y(),
            .layout = layout,
            .rule = acceptance_rule(math, shape, spec.fill == Fill::exact, algorithm),
            .algorithm = algorithm,
            .fingerprint = spec.fill == Fill::normal,
            .activation_only = spec.fill == Fill::delta};
  }
  ErrorSummary compare(MathClass math = MathClass::fp32, std::span<ReferencePoint> samples = {}) {
    return device->compare(comparison(math), samples);
  }

  Shape shape;
  Layout layout;
  std::unique_ptr<Device> device;
  FillSpec spec;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

class HonestResult : public testing::TestWithParam<std::tuple<Fill, Layout>> {};

TEST_P(HonestResult, Passes) {
  Case c(std::get<0>(GetParam()), std::get<1>(GetParam()));
  c.compute();
  const ErrorSummary error = c.compare();
  EXPECT_EQ(error.compared, kShape.y_elements());
  EXPECT_EQ(error.wrong, 0);
  EXPECT_LT(error.worst_ratio, 0.6);
  EXPECT_LE(error.p999_ratio, error.worst_ratio);
  EXPECT_LT(error.zero_accepted_share, 0.9);
}

INSTANTIATE_TEST_SUITE_P(EveryFill, HonestResult,
                         testing::Combine(testing::Values(Fill::kernelbench, Fill::normal, Fill::positive,
                                                          Fill::wide, Fill::tails, Fill::exact, Fill::delta,
                                                          Fill::special),
                                          testing::Values(Layout::nchw, Layout::nhwc)),
                         [](const auto& instance) {
                           return std::string(to_string(std::get<0>(instance.param))) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

TEST(Compare, FindsOneWrongOutputAndSaysWhere) {
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    Case c(Fill::kernelbench, layout);
    c.compute();
    c.y_at(1, 5, 8, 11) += 0.5f;
    c.y_at(1, 4, 3, 2) = std::nanf("");
    const ErrorSummary error = c.compare();
    EXPECT_EQ(error.wrong, 2);
    EXPECT_EQ(error.nan_outputs, 1);
    ASSERT_TRUE(error.first_wrong_at && error.worst_at);
    EXPECT_EQ(error.first_wrong_at->k, 4);
    EXPECT_EQ(error.first_wrong_at->p, 3);
    EXPECT_EQ(error.first_wrong_at->q, 2);
    EXPECT_EQ(error.worst_at->k, 4) << "a NaN is worse than any error";
    EXPECT_NEAR(error.max_abs, 0.5, 1e-5);
  }
}

TEST(Compare, NamesTheArithmeticByItsFingerprint) {
  Case c(Fill::normal, Layout::nchw, {.n = 2, .c = 32, .h = 16, .w = 16, .k = 8});
  c.compute();
  EXPECT_EQ(c.compare().consistent_with, "fp32");
  c.compute(to_tf32);
  EXPECT_EQ(c.compare().consistent_with, "tf32 or fp16, rounded to nearest");
  EXPECT_GT(c.compare().wrong, 0) << "TF32 multiplicands are not fp32";
  EXPECT_EQ(c.compare(MathClass::tf32).wrong, 0);
  c.compute(truncated_tf32);
  EXPECT_EQ(c.compare().consistent_with, "tf32, truncated");
  c.compute(to_bf16);
  EXPECT_EQ(c.compare().consistent_with, "bf16");
}

TEST(Compare, LetsTheLargestFloatsRoundToInfinityInTf32Only) {
  Case c(Fill::special, Layout::nchw, {.n = 2, .c = 32, .h = 16, .w = 16, .k = 8});
  c.compute(to_tf32);  // FLT_MAX becomes an infinity
  EXPECT_EQ(c.compare(MathClass::tf32).wrong, 0);
  EXPECT_GT(c.compare(MathClass::fp32).wrong, 0);
  EXPECT_LT(c.compare(MathClass::tf32).zero_accepted_share, 0.9);
}

TEST(Compare, RejectsAFlushedTailOnTails) {
  Case c(Fill::tails, Layout::nchw);
  c.compute();
  for (std::int64_t i = 0; i < c.shape.y_elements(); ++i)
    if (std::fabs(c.y()[i]) < 1e-8f) c.y()[i] = 0;
  EXPECT_GT(c.compare().wrong, 0);
}

TEST(Compare, SamplesCarryTheReference) {
  Case c(Fill::kernelbench, Layout::nhwc);
  c.compute();
  std::vector<ReferencePoint> samples{
      {.index = 0}, {.index = 1000}, {.index = 1000}, {.index = c.shape.y_elements() - 1}};
  c.compare(MathClass::fp32, samples);
  for (const ReferencePoint& sample : samples) {
    EXPECT_NEAR(static_cast<double>(sample.y), activation64(sample.z), 1e-5);
    EXPECT_GT(sample.s, std::fabs(sample.z) - 1e-6);
  }
  EXPECT_EQ(samples[1].z, samples[2].z);
}

TEST(Compare, ATransformMayErrByWhatAnyElementOfTheImageMayCost) {
  // One element of an image is loud, in a corner, which one tap alone meets: the tap that is 0.
  Case c(Fill::normal, Layout::nchw);
  c.x()[0] = 1e5f;
  for (std::int64_t i = 0; i < c.shape.k * c.shape.c; ++i) c.buffers[1]->floats()[9 * i] = 0;
  c.compute();
  c.y_at(0, 3, 5, 9) += 2e-3f;
  EXPECT_EQ(c.compare().wrong, 1);
  const Comparison comparison = c.comparison(MathClass::fp32, Algorithm::transform);
  EXPECT_EQ(c.device->compare(comparison, {}).wrong, 0);
  c.y_at(1, 3, 5, 9) += 2e-3f;  // the other image has no such element
  EXPECT_EQ(c.device->compare(comparison, {}).wrong, 1);
}

class HonestTransform : public testing::TestWithParam<std::tuple<Fill, std::int64_t>> {};

TEST_P(HonestTransform, Passes) {
  const std::int64_t channels = std::get<1>(GetParam());
  Case c(std::get<0>(GetParam()), Layout::nchw, {.n = 4, .c = channels, .h = 16, .w = 17, .k = 8});
  c.compute_by_winograd();
  const ErrorSummary error = c.device->compare(c.comparison(MathClass::fp32, Algorithm::transform), {});
  EXPECT_EQ(error.wrong, 0);
  EXPECT_LT(error.worst_ratio, 0.5);
  EXPECT_LT(error.fingerprint.value_or(0), 0.1);
}

INSTANTIATE_TEST_SUITE_P(EveryFill, HonestTransform,
                         testing::Combine(testing::Values(Fill::kernelbench, Fill::normal, Fill::positive,
                                                          Fill::wide, Fill::tails, Fill::exact),
                                          testing::Values<std::int64_t>(3, 64, 200)),
                         [](const auto& instance) {
                           return std::string(to_string(std::get<0>(instance.param))) + "_c" +
                                  std::to_string(std::get<1>(instance.param));
                         });

// Why a transform's factor is 256 more than that of a direct sum, for which 16 would do here.
TEST(Winograd, ALoneElementErrsBeyondADirectSumsFactorAndWithinATransforms) {
  constexpr Shape kTile{.n = 1, .c = 1, .h = 6, .w = 6, .k = 1};
  constexpr int kElements = 36, kDraws = 400;
  double worst = 0;  // error / (2^-24 |x| |w|)
  for (int draw = 0; draw < kDraws; ++draw)
    for (int at = 0; at < kElements; ++at)
      for (int tap = 0; tap < kTaps; ++tap) {
        const PhiloxBlock random =
            philox4x32_10(static_cast<std::uint64_t>(draw), static_cast<std::uint64_t>(at),
                          static_cast<std::uint64_t>(tap));
        std::vector<float> x(kElements), filter(kTaps);
        const float value = x[static_cast<std::size_t>(at)] = 1 + uniform01(random.word[0]);
        const float weight = filter[static_cast<std::size_t>(tap)] = 1 + uniform01(random.word[1]);
        const float bias = 0;
        const double product = double{value} * double{weight};
        const std::vector<float> z = convolve_by_winograd(kTile, x.data(), filter.data(), &bias, as_is);
        for (int i = 0; i < 16; ++i) {
          const bool meets = (i / 4 + tap / 3) * 6 + i % 4 + tap % 3 == at;
          const double error = std::fabs(double{z[static_cast<std::size_t>(i)]} - (meets ? product : 0));
          worst = std::max(worst, error / (0x1p-24 * product));
        }
      }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(worst, 16);
  EXPECT_LT(worst, 256);
}

TEST(Compare, ATransformOfTf32MultiplicandsIsOfNeitherClass) {
  for (const Fill fill : {Fill::kernelbench, Fill::normal, Fill::positive})
    for (const std::int64_t channels : {3, 64}) {
      Case c(fill, Layout::nchw, {.n = 2, .c = channels, .h = 16, .w = 17, .k = 8});
      c.compute_by_winograd(to_tf32);
      for (const MathClass math : {MathClass::fp32, MathClass::tf32})
        EXPECT_GT(c.device->compare(c.comparison(math, Algorithm::transform), {}).wrong, 0)
            << to_string(math) << " " << to_string(fill) << " c" << channels;
    }
}

TEST(Compare, CountsWrongOutputsByCoordinate) {
  constexpr std::uint32_t kPoison = 0x7fc0dead;
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    Case c(Fill::kernelbench, layout);
    c.compute();
    c.y_at(1, 5, 8, 11) += 0.5f;
    c.y_at(1, 4, 3, 11) = float_from_bits(kPoison);
    c.y_at(0, 4, 3, 2) = std::nanf("");
    const WrongCounts counts = c.device->count_wrong(c.comparison(), kPoison);
    EXPECT_EQ(counts.n, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(counts.k, (std::vector<std::int64_t>{0, 0, 0, 0, 2, 1}));
    EXPECT_EQ(counts.p, (std::vector<std::int64_t>{0, 0, 0, 2, 0, 0, 0, 0, 1}));
    EXPECT_EQ(counts.q, (std::vector<std::int64_t>{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
    EXPECT_EQ(counts.poisoned, 1);
  }
}

TEST(Compare, CanExpectRoundedMultiplicands) {
  Case c(Fill::normal, Layout::nchw);
  c.compute(to_tf32);
  Comparison comparison = c.comparison();
  EXPECT_GT(c.device->compare(comparison, {}).wrong, 0);
  comparison.multiplicands = Multiplicands::tf32_even;
  EXPECT_EQ(c.device->compare(comparison, {}).wrong, 0);
  c.compute();
  EXPECT_GT(c.device->compare(comparison, {}).wrong, 0);
}

TEST(Compare, OnDeltaTellsWhereTheActivationErrs) {
  Case c(Fill::delta, Layout::nchw);
  c.compute();
  const ErrorSummary honest = c.compare();
  ASSERT_TRUE(honest.activation_ulp);
  EXPECT_LT(*honest.activation_ulp, 1) << "rounded once, from float64";
  EXPECT_FALSE(honest.first_nonfinite_z);

  for (std::int64_t i = 0; i < c.shape.y_elements(); ++i)
    if (std::fabs(c.y()[i]) < 0x1p-125f) c.y()[i] = 0;
  EXPECT_LT(*c.compare().activation_ulp, 1) << "subnormals may be flushed";

  float nearest = HUGE_VALF, coarse = 0;
  for (std::int64_t i = 0; i < c.shape.y_elements(); ++i) {
    float& y = c.y()[i];
    if (y > 44 && y < nearest) nearest = y;  // there the activation is the identity
    if (y > 0.1f && y < 10) coarse = y;
  }
  for (std::int64_t i = 0; i < c.shape.y_elements(); ++i) {
    float& y = c.y()[i];
    if (y == coarse) y *= 1 + 0x1p-18f;
    if (y > 44) y = HUGE_VALF;
  }
  const ErrorSummary wrong = c.compare();
  EXPECT_GT(*wrong.activation_ulp, 30);
  EXPECT_NEAR(activation64(*wrong.activation_ulp_z), static_cast<double>(coarse), 1e-5);
  EXPECT_EQ(*wrong.first_nonfinite_z, static_cast<double>(nearest));

  Case other(Fill::normal, Layout::nchw);
  other.compute();
  EXPECT_FALSE(other.compare().activation_ulp)
      << "z is a sum there, and its rounding is not the activation's";
}

TEST(Buffer, SeesAWriteOutsideIt) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer stops at the write itself";
#endif
  const auto device = make_cpu_device();
  for (const std::size_t bytes : {4u, 36u, 4096u}) {
    auto past = device->allocate(bytes), before = device->allocate(bytes);
    EXPECT_EQ(past->damage(), Buffer::Damage::none);
    past->floats()[bytes / 4] = 0;
    before->floats()[-1] = 0;
    EXPECT_EQ(past->damage(), Buffer::Damage::after);
    EXPECT_EQ(before->damage(), Buffer::Damage::before);
  }
}

TEST(Checksum, DependsOnValuesAndOrder) {
  const auto device = make_cpu_device();
  auto buffer = device->allocate(4096);
  device->fill_words(buffer->data(), 4096, 7);
  const auto sum = device->checksum(buffer->data(), 4096);
  auto* words = static_cast<std::uint32_t*>(buffer->data());
  words[5] = 8;
  const auto changed = device->checksum(buffer->data(), 4096);
  std::swap(words[5], words[6]);
  const auto swapped = device->checksum(buffer->data(), 4096);
  EXPECT_NE(sum, changed);
  EXPECT_NE(changed, swapped);
}

TEST(Chunks, CoverEveryOutputOnce) {
  for (const std::int64_t most : {1L, 5L, 13L, 100L, 1000L, 1'000'000L}) {
    const Shape shape{.n = 3, .c = 1, .h = 5, .w = 7, .k = 4};
    std::vector<int> seen(static_cast<std::size_t>(shape.y_elements()));
    const Chunk whole{0, shape.n, 0, shape.k, 0, shape.p(), shape.q()};
    for_each_chunk(shape, most, [&](const Chunk& chunk) {
      EXPECT_LE(chunk.outputs(), std::max<std::int64_t>(most, shape.q()));
      for (std::int64_t i = 0; i < chunk.outputs(); ++i) {
        const auto at = chunk.at(i);
        EXPECT_EQ(chunk.index(at.n, at.k, at.p, at.q), i);
        ++seen[static_cast<std::size_t>(whole.index(at.n, at.k, at.p, at.q))];
      }
    });
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace convmish
