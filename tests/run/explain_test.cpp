// What a resource card knows, and what it says of the rest.
#include "run/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

constexpr Shape kShape{.n = 3, .c = 2, .h = 5, .w = 6, .k = 4};
constexpr Ceilings kCeilings{.dram_bytes = 1e9, .ffma_flops = 2e9};

class Explain : public testing::Test {
 protected:
  ResourceCard card_of(const Variant& variant, const Shape& shape = kShape) {
    return explain(variant, shape, {*device_, "asked for", kCeilings}, {nullptr, *device_});
  }
  template <class T>
  static std::string why_not(const Known<T>& known) {
    const auto* const unknown = std::get_if<NotKnown>(&known);
    return unknown ? unknown->why : "known";
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(Explain, TellsWhatThePlanTells) {
  Variant variant = host_variant("plain");
  variant.prepare = [](const Problem& problem) {
    problem.memory->allocate(48);
    Plan plan{.workspace_bytes = 100, .geometry = LaunchGeometry{.grid = {7, 1, 1}}, .note = "chosen"};
    plan.algorithm = Algorithm::transform;
    return plan;
  };
  const ResourceCard card = card_of(variant);
  const auto& plan = std::get<PlanFacts>(card.plan);
  EXPECT_EQ(plan.geometry->blocks(), 7);
  EXPECT_EQ(plan.algorithm, Algorithm::transform);
  EXPECT_EQ(plan.workspace_bytes, 100);
  EXPECT_EQ(plan.plan_bytes, 48);
  EXPECT_EQ(plan.note, "chosen");
  ASSERT_EQ(card.demands.size(), 2u) << "a transform has no arithmetic demand";
  EXPECT_EQ(card.demands[0].ceiling, "dram");
  EXPECT_EQ(card.demands[0].amount, kShape.least_bytes());
  EXPECT_DOUBLE_EQ(*card.demands[0].floor_ms(), kShape.least_bytes() / 1e6);
}

TEST_F(Explain, NeverLaunchesWhatItCannotRecord) {
  const Variant variant = host_variant("plain", [](const Problem&, const LaunchArgs&) { FAIL(); });
  const ResourceCard card = card_of(variant);
  EXPECT_EQ(why_not(card.plan), "known");
  EXPECT_EQ(why_not(card.shared), "only kernels that the CPU device emulates are recorded");
  ASSERT_EQ(card.demands.size(), 3u);
  EXPECT_EQ(card.demands[1].ceiling, "ffma");
  EXPECT_DOUBLE_EQ(*card.demands[1].floor_ms(), kShape.flops() / 2e6);
  EXPECT_FALSE(card.demands[2].floor_ms()) << "its rate is not known";
}

TEST_F(Explain, TellsWhyAVariantOfAnotherDeviceIsNotKnown) {
  Variant variant = host_variant("elsewhere");
  variant.device = DeviceKind::cuda;
  variant.prepare = [](const Problem&) -> Plan { throw DeviceError("was prepared"); };
  const ResourceCard card = card_of(variant);
  EXPECT_EQ(why_not(card.plan), "runs on cuda; this device is cpu (asked for)");
  ASSERT_EQ(card.demands.size(), 3u) << "the work is that of the shape";
  for (const Demand& demand : card.demands)
    EXPECT_FALSE(demand.rate) << "of a device that it does not run on";
}

TEST_F(Explain, TellsWhyAShapeIsRefused) {
  Variant variant = host_variant("picky");
  variant.supports = [](const Shape&, const DeviceInfo&) { return std::optional<std::string>("c is odd"); };
  EXPECT_EQ(why_not(card_of(variant).plan), "c is odd");

  const Shape too_large{.n = 1 << 20, .c = 1 << 10, .h = 256, .w = 256, .k = 1};
  EXPECT_THAT(why_not(card_of(host_variant("plain"), too_large).plan),
              testing::HasSubstr("bytes of device memory"));
}

}  // namespace
}  // namespace convmish
