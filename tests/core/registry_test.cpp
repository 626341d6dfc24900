#include "core/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace convmish {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Variant variant(std::string name, DeviceKind device, MathClass math = MathClass::fp32) {
  Variant made;
  made.file = "variants/" + name + ".cu";
  made.name = std::move(name);
  made.device = device;
  made.math = math;
  return made;
}

class SelectVariants : public testing::Test {
 protected:
  SelectVariants() {
    registry_.add(variant("naive", DeviceKind::cuda));
    registry_.add(variant("tiled", DeviceKind::cuda));
    registry_.add(variant("cudnn_unfused", DeviceKind::cuda));
    registry_.add(variant("cudnn_unfused", DeviceKind::cuda, MathClass::tf32));
    registry_.add(variant("cudnn_fused_mish", DeviceKind::cuda, MathClass::tf32));
    registry_.add(variant("naive", DeviceKind::cpu));
    registry_.add(variant("onednn_fused", DeviceKind::cpu));
  }

  /// "name on device" of what is found on any, or the one refusal.
  std::vector<std::string> found(const std::string& pattern) const {
    std::vector<std::string> names;
    try {
      for (const Variant* variant : find_variants(registry_, pattern))
        names.push_back(variant->name + " on " + std::string(to_string(variant->device)));
    } catch (const InputError& error) {
      names = {error.what()};
    }
    return names;
  }

  /// "name:class" of what is selected, or the one refusal.
  std::vector<std::string> selected(DeviceKind device, const std::vector<std::string>& patterns) const {
    std::vector<std::string> names;
    try {
      for (const Variant* chosen : select_variants(registry_, device, patterns))
        names.push_back(chosen->name + ":" + std::string(to_string(chosen->math)));
    } catch (const InputError& error) {
      return {error.what()};
    }
    return names;
  }
  std::vector<std::string> on_gpu(const std::vector<std::string>& patterns) const {
    return selected(DeviceKind::cuda, patterns);
  }

  Registry registry_;
};

TEST_F(SelectVariants, FindsAPatternOnEveryDevice) {
  EXPECT_THAT(found("naive"), ElementsAre("naive on cuda", "naive on cpu"));
  EXPECT_THAT(found("*_fused:fp32"), ElementsAre("onednn_fused on cpu"));
  EXPECT_THAT(found("tilde"),
              ElementsAre("no variant matches \"tilde\"; closest: tiled. convmish-bench --list shows all"));
  EXPECT_THAT(found("tiled:bf16"), ElementsAre("\"tiled:bf16\" matches nothing: tiled has class fp32 only"));
}

TEST_F(SelectVariants, TakesAllOfTheDeviceWhenNothingIsNamed) {
  EXPECT_THAT(selected(DeviceKind::cpu, {}), ElementsAre("naive:fp32", "onednn_fused:fp32"));
  EXPECT_EQ(on_gpu({"all"}), on_gpu({}));
  EXPECT_EQ(on_gpu({}).size(), 5u);
}

TEST_F(SelectVariants, TakesNamesGlobsAndClasses) {
  EXPECT_THAT(on_gpu({"tiled"}), ElementsAre("tiled:fp32"));
  EXPECT_THAT(on_gpu({"cudnn_*"}),
              ElementsAre("cudnn_unfused:fp32", "cudnn_unfused:tf32", "cudnn_fused_mish:tf32"));
  EXPECT_THAT(on_gpu({"cudnn_unfused:tf32"}), ElementsAre("cudnn_unfused:tf32"));
  EXPECT_THAT(on_gpu({"all:tf32"}), ElementsAre("cudnn_unfused:tf32", "cudnn_fused_mish:tf32"));
}

TEST_F(SelectVariants, KeepsTheRegistrysOrderAndEachOnce) {
  EXPECT_THAT(on_gpu({"tiled", "naive", "t*", "naive"}), ElementsAre("naive:fp32", "tiled:fp32"));
}

TEST_F(SelectVariants, NamesTheNearestVariant) {
  EXPECT_THAT(on_gpu({"naive", "tilde"}),
              ElementsAre("no variant matches \"tilde\"; closest: tiled. convmish-bench --list shows all"));
  EXPECT_THAT(on_gpu({"tilde*"}),
              ElementsAre("no variant matches \"tilde*\"; closest: tiled. convmish-bench --list shows all"));
  EXPECT_THAT(on_gpu({"winograd"}),
              ElementsAre("no variant matches \"winograd\"; convmish-bench --list shows all"));
}

TEST_F(SelectVariants, SaysThatAVariantIsOfAnotherDevice) {
  EXPECT_THAT(selected(DeviceKind::cpu, {"cudnn_unfused"}),
              ElementsAre("\"cudnn_unfused\" runs on cuda only; this run is on cpu"));
}

TEST_F(SelectVariants, NamesAVariantOfAnotherDeviceWhereThisOneHasNoneNear) {
  EXPECT_THAT(selected(DeviceKind::cpu, {"tilde"}),
              ElementsAre("no variant matches \"tilde\"; closest: tiled. convmish-bench --list shows all"));
}

TEST_F(SelectVariants, SaysWhichClassesThereAre) {
  EXPECT_THAT(on_gpu({"naive:tf32"}),
              ElementsAre("\"naive:tf32\" matches nothing: naive on cuda has class fp32 only"));
  EXPECT_THAT(on_gpu({"naive:fp23"}), ElementsAre("unknown math class \"fp23\"; closest: fp32"));
}

class SelectGroups : public SelectVariants {
 protected:
  SelectGroups() {
    Variant ablation = variant("tiled_unpadded", DeviceKind::cuda);
    ablation.group = Group::ablation;
    registry_.add(ablation);
    Variant mutant = variant("zeros", DeviceKind::cuda);
    mutant.group = Group::mutant;
    registry_.add(mutant);
  }
};

TEST_F(SelectGroups, TakesAllAblationsByTheirGroupsName) {
  EXPECT_THAT(on_gpu({"ablation"}), ElementsAre("tiled_unpadded:fp32"));
  EXPECT_THAT(on_gpu({"ablation:fp32", "naive"}), ElementsAre("naive:fp32", "tiled_unpadded:fp32"));
  EXPECT_THAT(on_gpu({"ablation:tf32"}),
              ElementsAre("\"ablation:tf32\" matches nothing: tiled_unpadded on cuda has class fp32 only"));
}

TEST_F(SelectGroups, TakesAnAblationByItsExactNameOtherwise) {
  EXPECT_THAT(on_gpu({"tiled_unpadded"}), ElementsAre("tiled_unpadded:fp32"));
  EXPECT_THAT(on_gpu({"tiled_unpadded:fp32", "naive"}), ElementsAre("naive:fp32", "tiled_unpadded:fp32"));
  EXPECT_THAT(on_gpu({"tiled*"}), ElementsAre("tiled:fp32"));
  EXPECT_EQ(on_gpu({"all"}).size(), 5u);
  EXPECT_EQ(on_gpu({}).size(), 5u);
}

TEST_F(SelectGroups, NeverTakesOrNamesAMutant) {
  EXPECT_THAT(on_gpu({"zeros"}),
              ElementsAre("no variant matches \"zeros\"; convmish-bench --list shows all"));
  EXPECT_THAT(on_gpu({"zero*"}),
              ElementsAre("no variant matches \"zero*\"; convmish-bench --list shows all"));
}

TEST_F(SelectGroups, ListsAGroup) {
  const auto mutants = variants_of_group(registry_, DeviceKind::cuda, Group::mutant);
  ASSERT_EQ(mutants.size(), 1u);
  EXPECT_EQ(mutants.front()->name, "zeros");
  EXPECT_THAT(variants_of_group(registry_, DeviceKind::cpu, Group::mutant), IsEmpty());
  EXPECT_EQ(variants_of_group(registry_, DeviceKind::cpu, Group::standard).size(), 2u);
}

TEST_F(SelectVariants, RefusesWhatIsNoPattern) {
  EXPECT_THAT(on_gpu({""}), ElementsAre("\"\" names no variant; want a name or a glob, as in cudnn_*:tf32"));
  EXPECT_THAT(on_gpu({":fp32"}),
              ElementsAre("\":fp32\" names no variant; want a name or a glob, as in cudnn_*:tf32"));
}

TEST(Registry, KeepsOneNameInTwoClassesAndOnTwoDevices) {
  Registry registry;
  registry.add(variant("tiled", DeviceKind::cuda));
  registry.add(variant("tiled", DeviceKind::cuda, MathClass::tf32));
  registry.add(variant("tiled", DeviceKind::cpu));
  EXPECT_EQ(registry.variants().size(), 3u);
  EXPECT_THAT(registry.problems(), IsEmpty());
}

TEST(Registry, TellsBothFilesOfANameUsedTwice) {
  Registry registry;
  Variant copy = variant("tiled", DeviceKind::cuda);
  copy.file = "variants/tiled_copy.cu";
  registry.add(variant("tiled", DeviceKind::cuda));
  registry.add(copy);
  EXPECT_EQ(registry.variants().size(), 1u);
  EXPECT_THAT(registry.problems(), ElementsAre("variant tiled:fp32 for cuda is registered twice, in "
                                               "variants/tiled.cu and in variants/tiled_copy.cu"));
}

TEST(Registry, KeepsOutNamesThatCannotBeSelected) {
  Registry registry;
  for (const char* const name : {"", "all", "ablation", "a,b", "a:b", "a*", "Naive", "a b"})
    registry.add(variant(name, DeviceKind::cpu));
  EXPECT_THAT(registry.variants(), IsEmpty());
  EXPECT_EQ(registry.problems().size(), 8u);
}

TEST(RegisterVariant, RecordsItsFile) {
  const RegisterVariant registered(variant("registered_by_the_test", DeviceKind::cpu));
  const auto& variants = Registry::instance().variants();
  ASSERT_FALSE(variants.empty());
  EXPECT_THAT(variants.back().file, testing::EndsWith("registry_test.cpp"));
}

TEST(WhyUnavailable, ComparesTheComputeCapability) {
  Variant hopper = variant("hopper", DeviceKind::cuda);
  hopper.min_compute_capability = 90;
  DeviceInfo device{.kind = DeviceKind::cuda, .compute_major = 8, .compute_minor = 6};
  EXPECT_EQ(why_unavailable(hopper, device), "needs compute capability 9.0; this GPU has 8.6");
  device.compute_major = 9, device.compute_minor = 0;
  EXPECT_EQ(why_unavailable(hopper, device), std::nullopt);
}

TEST(WhyUnavailable, ComparesTheDevice) {
  EXPECT_EQ(why_unavailable(variant("naive", DeviceKind::cuda), {.kind = DeviceKind::cpu}),
            "runs on cuda; this device is cpu");
  EXPECT_EQ(why_unavailable(variant("naive", DeviceKind::cpu), {.kind = DeviceKind::cpu}), std::nullopt);
}

}  // namespace
}  // namespace convmish
