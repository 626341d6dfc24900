#include "core/tuning_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "core/shape_text.hpp"
#include "tests/core/bad_files.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;

const fs::path kBadTables = CONVMISH_BAD_TABLES;

template <class Call>
std::string refusal(Call call) {
  try {
    call();
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

DeviceInfo device(std::string name) {
  DeviceInfo info;
  info.kind = DeviceKind::cpu;
  info.name = std::move(name);
  return info;
}

Variant variant(std::string name, MathClass math, std::vector<std::string> configurations) {
  Variant made;
  made.name = std::move(name);
  made.device = DeviceKind::cpu;
  made.math = math;
  made.configurations = std::move(configurations);
  return made;
}

const Shape kShape = parse_shape("n1c2h5w6k3"), kOther = parse_shape("n10c2h5w6k3");

TEST(TuningTable, FindsByDeviceVariantAndShape) {
  const auto table =
      TuningTable::parse(R"({"devices": {"a": {"tiled:fp32": {"n1c2h5w6k3": "8x8"}}}})", "table.json");
  const Variant tiled = variant("tiled", MathClass::fp32, {"8x8"});
  EXPECT_EQ(table.find(device("a"), tiled, kShape), "8x8");
  EXPECT_EQ(table.find(device("b"), tiled, kShape), std::nullopt);
  EXPECT_EQ(table.find(device("a"), tiled, kOther), std::nullopt);
  EXPECT_EQ(table.find(device("a"), variant("tiled", MathClass::tf32, {}), kShape), std::nullopt);
  EXPECT_EQ(table.find(device("a"), variant("naive", MathClass::fp32, {}), kShape), std::nullopt);
}

TEST(TuningTable, AdoptsWhatAnotherSays) {
  const Variant tiled = variant("tiled", MathClass::fp32, {"8x8", "4x4"});
  TuningTable table, newer;
  table.set(device("a"), tiled, kShape, "8x8");
  table.set(device("b"), tiled, kShape, "8x8");
  newer.set(device("a"), tiled, kShape, "4x4");
  newer.set(device("a"), tiled, kOther, "4x4");
  table.adopt(newer);
  EXPECT_EQ(table.find(device("a"), tiled, kShape), "4x4");
  EXPECT_EQ(table.find(device("a"), tiled, kOther), "4x4");
  EXPECT_EQ(table.find(device("b"), tiled, kShape), "8x8");
}

TEST(TuningTable, ReadsWhatItWrites) {
  auto table = TuningTable::parse(R"({"$schema": "x", "why": "y", "devices": {}})", "table.json");
  const Variant tiled = variant("tiled", MathClass::fp32, {"8x8", "4x4"});
  table.set(device("a/b"), tiled, kOther, "4x4");
  table.set(device("a/b"), tiled, kShape, "4x4");
  table.set(device("a/b"), tiled, kShape, "8x8");
  const std::string text = table.to_json();
  EXPECT_EQ(text, R"({
  "$schema": "x",
  "why": "y",
  "devices": {
    "a/b": {
      "tiled:fp32": {
        "n1c2h5w6k3": "8x8",
        "n10c2h5w6k3": "4x4"
      }
    }
  }
}
)");
  EXPECT_EQ(TuningTable::parse(text, "table.json").to_json(), text);
}

TEST(TuningTable, ChecksWhatItSaysOfTheDeviceInUseAlone) {
  Registry registry;
  registry.add(variant("tiled", MathClass::fp32, {"8x8", "4x4"}));
  registry.add(variant("naive", MathClass::fp32, {}));
  const auto told = [&](const std::string& of_device) {
    return refusal([&] {
      TuningTable::parse(R"({"devices": {"a/b": )" + of_device + "}}", "t.json")
          .check(device("a/b"), registry);
    });
  };
  EXPECT_EQ(told(R"({"tiled:fp32": {"n1c2h5w6k3": "4x4"}})"), "accepted");
  EXPECT_EQ(
      told(R"({"tiled:fp32": {"n1c2h5w6k3": "8x4"}})"),
      "t.json: /devices/a~1b/tiled:fp32/n1c2h5w6k3: unknown configuration \"8x4\"; want one of 8x8, 4x4");
  EXPECT_EQ(told(R"({"tile:fp32": {"n1c2h5w6k3": "8x8"}})"),
            "t.json: /devices/a~1b/tile:fp32: no variant with configurations; closest: tiled:fp32");
  EXPECT_EQ(told(R"({"naive:fp32": {}})"),
            "t.json: /devices/a~1b/naive:fp32: no variant with configurations; closest: tiled:fp32");
  EXPECT_EQ(refusal([&] {
              TuningTable::parse(R"({"devices": {"c": {"x:fp32": {"n1c2h5w6k3": "y"}}}})", "t.json")
                  .check(device("a/b"), registry);
            }),
            "accepted");
}

TEST(TuningTable, TheShippedOneCanBeRead) {
  EXPECT_EQ(TuningTable::load(fs::path(CONVMISH_SHIPPED_CONFIGS) / "tune.json").to_json(),
            shipped_tuning_table().to_json());
}

class BadTable : public testing::TestWithParam<BadFile> {};

TEST_P(BadTable, GetsItsMessage) {
  const fs::path file = kBadTables / GetParam().file;
  EXPECT_EQ(refusal([&] { TuningTable::load(file); }), file.string() + ": " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(TuningTable, BadTable, testing::ValuesIn(bad_files(kBadTables)),
                         [](const auto& test) { return test.param.name(); });

TEST(BadTables, AllHaveAMessage) {
  EXPECT_TRUE(each_has_its_message(kBadTables));
}

}  // namespace
}  // namespace convmish
