// The elementwise pass of the cuDNN variants, on the CPU device.
#include "variants/common/activation_pass.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "check/acceptance.hpp"

namespace convmish {
namespace {

/// A tensor whose first element lies `misalignment` floats behind a 16-byte boundary; exactly its size, so
/// that a sanitizer sees an access outside it.
class Tensor4 {
 public:
  Tensor4(std::int64_t elements, std::size_t misalignment)
      : misalignment_(misalignment),
        floats_(static_cast<std::size_t>(elements) + misalignment, std::numeric_limits<float>::quiet_NaN()) {}
  float* data() { return floats_.data() + misalignment_; }

 private:
  std::size_t misalignment_;
  std::vector<float> floats_;
};

/// A value that tells where it came from, over the range in which Mish is interesting.
float value_at(std::int64_t i) {
  return static_cast<float>(i % 613) * 0.037f - 15.0f;
}

template <ActivationForm kForm = ActivationForm{}>
void run_and_check(const Shape& shape, std::size_t in_misalignment, std::size_t out_misalignment,
                   bool in_place, bool with_bias, MishCount mish) {
  SCOPED_TRACE(testing::Message() << "n" << shape.n << " k" << shape.k << " p" << shape.p() << " q"
                                  << shape.q() << ", misaligned by " << in_misalignment << " and "
                                  << out_misalignment << (in_place ? ", in place" : "")
                                  << (with_bias ? ", bias" : ""));
  const std::int64_t elements = shape.y_elements(), plane = shape.p() * shape.q();
  Tensor4 in(elements, in_misalignment), separate(elements, out_misalignment);
  for (std::int64_t i = 0; i < elements; ++i) in.data()[i] = value_at(i);
  std::vector<float> bias;
  for (std::int64_t k = 0; with_bias && k < shape.k; ++k)
    bias.push_back(static_cast<float>(k % 31) * 0.21f - 3.0f);
  float* out = in_place ? in.data() : separate.data();

  activate<DeviceKind::cpu, kForm>({in.data(), with_bias ? bias.data() : nullptr, out, shape, mish}, nullptr);

  for (std::int64_t i = 0; i < elements; ++i) {
    const float z = value_at(i) + (with_bias ? bias[static_cast<std::size_t>(i / plane % shape.k)] : 0.0f);
    const double expected = mish == MishCount::twice ? activation64(z) : mish64(z);
    ASSERT_LE(std::fabs(out[i] - expected), 8 * 0x1p-24 * std::fabs(expected)) << "element " << i;
    if (!in_place) {
      ASSERT_EQ(in.data()[i], value_at(i)) << "element " << i;
    }
  }
}

TEST(ActivationPass, IsRightForPlanesOfEverySizeAndAlignment) {
  for (const auto [n, k, p, q] : {
           std::array<std::int64_t, 4>{1, 1, 1, 1},  // less than one vector
           {3, 5, 1, 1},                             // a vector spans several planes
           {2, 3, 1, 3},
           {2, 7, 5, 5},
           {2, 3, 7, 7},
           {1, 1000, 1, 2},  // a block spans many planes
           {2, 2, 32, 32},   // no vector straddles planes
           {2, 3, 45, 47},   // planes a little larger than a block
           {1, 2, 2, 1024},  // planes of exactly a block
       }) {
    const Shape shape{.n = n, .c = 1, .h = p + 2, .w = q + 2, .k = k};
    for (std::size_t in = 0; in < 4; ++in)
      for (std::size_t out = 0; out < 4; ++out) run_and_check(shape, in, out, false, true, MishCount::twice);
  }
}

TEST(ActivationPass, WorksInPlaceWithoutBiasAndWithOneMish) {
  const Shape shape{.n = 2, .c = 1, .h = 13, .w = 22, .k = 3};
  for (const MishCount mish : {MishCount::once, MishCount::twice})
    for (const bool with_bias : {false, true})
      for (const bool in_place : {false, true})
        for (const std::size_t misalignment : {0u, 1u})
          run_and_check(shape, misalignment, misalignment, in_place, with_bias, mish);
}

template <ActivationForm kForm>
void run_and_check_form() {
  for (const Shape shape : {Shape{.n = 1, .c = 1, .h = 3, .w = 5, .k = 1},     // less than one vector
                            Shape{.n = 2, .c = 1, .h = 47, .w = 49, .k = 3}})  // several blocks
    for (const bool in_place : {false, true})
      for (const std::size_t misalignment : {0u, 1u})
        run_and_check<kForm>(shape, misalignment, misalignment, in_place, true, MishCount::twice);
}

TEST(ActivationPass, IsRightInTheFormsOfTheAblations) {
  run_and_check_form<ActivationForm{.width = 1}>();
  run_and_check_form<ActivationForm{.mish = MishForm::definition}>();
  run_and_check_form<ActivationForm{.grid = GridForm::grid_stride}>();
}

}  // namespace
}  // namespace convmish
