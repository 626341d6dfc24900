// Every variant of the CPU device on the edges of what a shape can be, against a float64 loop of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "check/acceptance.hpp"
#include "check/fill.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "tests/cpu/host_plan_memory.hpp"
#include "tests/cpu/thread_order.hpp"

namespace convmish {
namespace {

std::vector<float> draw_all(const FillSpec& spec, Tensor tensor, std::int64_t elements) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(draw(spec, tensor, i));
  return values;
}

struct Inputs {
  Inputs(const Shape& shape_, Fill fill) : shape(shape_) {
    const FillSpec spec = fill_spec(fill, 42, shape);
    x = draw_all(spec, Tensor::x, shape.x_elements());
    filter = draw_all(spec, Tensor::filter, shape.filter_elements());
    bias = draw_all(spec, Tensor::bias, shape.k);
  }

  struct PreActivation {
    double z, s;  // s: the sum of magnitudes
  };

  PreActivation pre_activation(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    const double b = bias[static_cast<std::size_t>(k)];
    PreActivation sum{b, std::fabs(b)};
    for (std::int64_t c = 0; c < shape.c; ++c)
      for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t s = 0; s < 3; ++s) {
          const auto at_x = ((n * shape.c + c) * shape.h + p + r) * shape.w + q + s;
          const auto at_filter = ((k * shape.c + c) * 3 + r) * 3 + s;
          const double product =
              double{x[static_cast<std::size_t>(at_x)]} * filter[static_cast<std::size_t>(at_filter)];
          sum.z += product;
          sum.s += std::fabs(product);
        }
    return sum;
  }

  Shape shape;
  std::vector<float> x, filter, bias;
};

/// The variant's output, over a buffer of NaN of exactly its size.
std::vector<float> run(const Variant& variant, const Inputs& inputs) {
  const DeviceInfo device;
  HostPlanMemory memory;
  std::vector<float> y(static_cast<std::size_t>(inputs.shape.y_elements()),
                       std::numeric_limits<float>::quiet_NaN());
  const Plan plan = variant.prepare({.shape = inputs.shape,
                                     .filter = inputs.filter.data(),
                                     .bias = inputs.bias.data(),
                                     .x = inputs.x.data(),
                                     .y = y.data(),
                                     .device = &device,
                                     .memory = &memory});
  y.assign(y.size(), std::numeric_limits<float>::quiet_NaN());
  void* workspace = plan.workspace_bytes ? memory.allocate(plan.workspace_bytes) : nullptr;
  plan.launch({.x = inputs.x.data(), .y = y.data(), .workspace = workspace});
  return y;
}

void expect_right(const Variant& variant, const Inputs& inputs, const std::vector<float>& y) {
  const Shape& shape = inputs.shape;
  const AcceptanceRule rule = acceptance_rule(variant.math, shape, false);
  std::size_t i = 0;
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t k = 0; k < shape.k; ++k)
      for (std::int64_t p = 0; p < shape.p(); ++p)
        for (std::int64_t q = 0; q < shape.q(); ++q, ++i) {
          const auto [z, s] = inputs.pre_activation(n, k, p, q);
          const Judgement judgement = judge(y[i], z, s, rule);
          ASSERT_TRUE(judgement.right) << "n" << n << " k" << k << " p" << p << " q" << q << ": " << y[i]
                                       << ", expected " << judgement.expected;
        }
}

using CpuVariants = testing::TestWithParam<const Variant*>;
struct StandardCpuVariants : CpuVariants {};  // ablations share their launches

std::vector<const Variant*> cpu_variants(Group group) {
  std::vector<const Variant*> found = variants_of_group(Registry::instance(), DeviceKind::cpu, group);
  std::erase_if(found, [](const Variant* variant) { return variant->layout != Layout::nchw; });
  return found;
}

// Every test below is about whatever is registered; so something must be.
TEST(CpuVariants, ThePortableKernelsAreRegistered) {
  EXPECT_GE(cpu_variants(Group::standard).size(), 3u);
  EXPECT_GE(cpu_variants(Group::ablation).size(), 10u);
}

std::string test_name(const testing::TestParamInfo<const Variant*>& variant) {
  return variant.param->name + "_" + std::string(to_string(variant.param->math));
}

INSTANTIATE_TEST_SUITE_P(Registry, CpuVariants, testing::ValuesIn(cpu_variants(Group::standard)), test_name);
INSTANTIATE_TEST_SUITE_P(Ablations, CpuVariants, testing::ValuesIn(cpu_variants(Group::ablation)), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, StandardCpuVariants, testing::ValuesIn(cpu_variants(Group::standard)),
                         test_name);

TEST_P(CpuVariants, IsRightOnEdgeShapesInEitherThreadOrder) {
  for (const char* text : {
           "n1c1h3w3k1",     // one output
           "n2c3h5w8k2",     // a partial channel block, q even
           "n1c65h6w9k3",    // one channel beyond whole blocks of 8; q odd
           "n1c8h20w19k1",   // one whole channel block
           "n1c7h18w18k2",   // p and q exactly a tile of 16
           "n1c9h17w19k2",   // just under and just over a tile
           "n2c2h19w17k1",   // the other way round
           "n1c2h5w6k127",   // many output channels, one short of a power of two
           "n1c5h5w6k130",   // beyond two or one tiles of 64 or 128 output channels
           "n1c3h3w67k2",    // one row
           "n1c3h67w3k2",    // one column
           "n3c1h34w35k1",   // two tiles and a column, several images
           "n1c4h12w100k1",  // h != w
       }) {
    SCOPED_TRACE(text);
    const Inputs inputs(parse_shape(text), Fill::normal);
    const std::vector<float> y = run(*GetParam(), inputs);
    expect_right(*GetParam(), inputs, y);

    const OrderScope reversed(simt::ThreadOrder::reverse);
    const std::vector<float> again = run(*GetParam(), inputs);
    EXPECT_EQ(std::memcmp(y.data(), again.data(), y.size() * sizeof(float)), 0)
        << "the order of threads changes the result";
  }
}

TEST_P(CpuVariants, IsRightOnTheTailsOfTheActivation) {
  const Inputs inputs({.n = 1, .c = 3, .h = 20, .w = 21, .k = 5}, Fill::tails);
  expect_right(*GetParam(), inputs, run(*GetParam(), inputs));
}

TEST_P(CpuVariants, KeepsNanAndInfinityInTheirOwnWindows) {
  Inputs inputs({.n = 1, .c = 9, .h = 20, .w = 21, .k = 2}, Fill::normal);
  inputs.x[5 * 21 + 7] = std::numeric_limits<float>::quiet_NaN();
  inputs.x[(8 * 20 + 19) * 21 + 20] = std::numeric_limits<float>::infinity();  // last row and column
  expect_right(*GetParam(), inputs, run(*GetParam(), inputs));
}

// A CUDA grid counts at most 65535 blocks in y and z.
TEST_P(StandardCpuVariants, IsRightBeyondTheGridLimits) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "takes minutes under AddressSanitizer";
#endif
  for (const char* text : {"n1c1h3w3k65537", "n65537c1h3w3k1"}) {
    SCOPED_TRACE(text);
    const Inputs inputs(parse_shape(text), Fill::normal);
    expect_right(*GetParam(), inputs, run(*GetParam(), inputs));
  }
}

}  // namespace
}  // namespace convmish
