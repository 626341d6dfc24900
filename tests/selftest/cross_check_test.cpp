#include "run/cross_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "check/tensor_view.hpp"
#include "core/device.hpp"
#include "core/error.hpp"

namespace convmish {
namespace {

constexpr Shape kShape{.n = 3, .c = 7, .h = 30, .w = 25, .k = 11};

/// The samples with the reference of the CPU device.
std::vector<ReferencePoint> reference(Device& device, const FillSpec& spec, std::int64_t count) {
  std::vector<std::unique_ptr<Buffer>> tensors;
  for (const Tensor tensor : {Tensor::x, Tensor::filter, Tensor::bias}) {
    tensors.push_back(device.allocate(4 * static_cast<std::size_t>(tensor_dims(spec.shape, tensor).count())));
    device.draw_tensor(spec, tensor, Layout::nchw, tensors.back()->floats());
  }
  const auto y = device.allocate(4 * static_cast<std::size_t>(spec.shape.y_elements()));
  device.fill_words(y->data(), y->bytes(), 0);
  auto samples = sample_outputs(spec.shape, 1, count);
  device.compare({.shape = spec.shape,
                  .x = tensors[0]->floats(),
                  .filter = tensors[1]->floats(),
                  .bias = tensors[2]->floats(),
                  .y = y->floats()},
                 samples);
  return samples;
}

TEST(SampleOutputs, HoldsAllCornersInOrderEachOnce) {
  const auto samples = sample_outputs(kShape, 1, 4096);
  ASSERT_EQ(samples.size(), 4096u);
  for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_LT(samples[i - 1].index, samples[i].index);
  const Chunk whole{0, kShape.n, 0, kShape.k, 0, kShape.p(), kShape.q()};
  for (const std::int64_t n : {std::int64_t{0}, kShape.n - 1})
    for (const std::int64_t k : {std::int64_t{0}, kShape.k - 1})
      for (const std::int64_t p : {std::int64_t{0}, kShape.p() - 1})
        for (const std::int64_t q : {std::int64_t{0}, kShape.q() - 1})
          EXPECT_TRUE(
              std::ranges::binary_search(samples, whole.index(n, k, p, q), {}, &ReferencePoint::index));
}

TEST(SampleOutputs, TakesEveryOutputOfASmallShape) {
  const auto samples = sample_outputs({.n = 1, .c = 9, .h = 4, .w = 5, .k = 2}, 1);
  ASSERT_EQ(samples.size(), 12u);
  EXPECT_EQ(samples.back().index, 11);
}

TEST(CrossCheck, AgreesWithTheDeviceOnEveryFill) {
  const auto device = make_cpu_device();
  for (const auto& fill : Words<Fill>::list) {
    const FillSpec spec = fill_spec(fill.value, 5, kShape);
    EXPECT_NO_THROW(cross_check_reference(spec, reference(*device, spec, 500))) << fill.text;
  }
}

class CrossCheckOfAWrongReference : public testing::Test {
 protected:
  void expect_found(const std::vector<ReferencePoint>& samples) const {
    EXPECT_THROW(cross_check_reference(spec_, samples), EnvironmentError);
  }

  FillSpec spec_ = fill_spec(Fill::normal, 5, kShape);
  std::vector<ReferencePoint> samples_ = reference(*make_cpu_device(), spec_, 500);
};

TEST_F(CrossCheckOfAWrongReference, FindsASmallErrorAndSaysWhere) {
  samples_[499].z += 1e-11 * samples_[499].s;
  try {
    cross_check_reference(spec_, samples_);
    FAIL() << "not found";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("shape n3c7h30w25k11, fill normal, n2 k10 p27 q22"));
  }
}

TEST_F(CrossCheckOfAWrongReference, FindsAWrongSumOfMagnitudes) {
  samples_[0].s *= 1 + 1e-11;
  expect_found(samples_);
}

TEST_F(CrossCheckOfAWrongReference, FindsNaN) {
  samples_[7].z = std::numeric_limits<double>::quiet_NaN();
  expect_found(samples_);
}

}  // namespace
}  // namespace convmish
