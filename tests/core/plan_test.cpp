#include "core/plan.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "core/shape_text.hpp"
#include "tests/core/bad_files.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kBadConfigs = CONVMISH_BAD_CONFIGS;
const fs::path kShippedConfigs = CONVMISH_SHIPPED_CONFIGS;

std::string refusal(const fs::path& file) {
  try {
    load_config(file);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<std::string> texts(const std::vector<Shape>& shapes) {
  std::vector<std::string> list;
  for (const Shape& shape : shapes) list.push_back(to_string(shape));
  return list;
}

/// A config file that lives as long as the test.
class LoadConfig : public testing::Test {
 protected:
  LoadConfig() : file_(fs::path(testing::TempDir()) / (test_name() + ".json")) {}
  ~LoadConfig() override { fs::remove(file_); }

  RunOptions load(const std::string& text) {
    std::ofstream(file_) << text;
    return load_config(file_);
  }

  static std::string test_name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }

  fs::path file_;
};

TEST_F(LoadConfig, LeavesDefaultsWhereNothingIsSaid) {
  const RunOptions options = load("{}"), defaults;
  EXPECT_TRUE(options.variants.empty());
  EXPECT_TRUE(options.shapes.empty());
  EXPECT_TRUE(options.fills.empty());
  EXPECT_EQ(options.seed, defaults.seed);
  EXPECT_EQ(options.check, defaults.check);
  EXPECT_EQ(options.time, defaults.time);
  EXPECT_EQ(options.timing.samples, std::nullopt);
}

TEST_F(LoadConfig, ReadsEveryKey) {
  const RunOptions options = load(R"({
    "$schema": "x", "why": "y",
    "variants": ["naive", "cudnn_*:tf32"],
    "shapes": ["n2c3h4w5k6", {"n": 1, "c": 1, "h": 3, "w": 3, "k": 7}],
    "fills": ["wide", "exact"],
    "seed": 18446744073709551615,
    "check": true, "time": false,
    "timeout_s": 7,
    "timing": {"min_time_s": 0.25, "max_time_s": 2, "ci_half_width": 0.01, "samples": 30, "cache": "cold", "duty_cycle": 1}
  })");
  EXPECT_THAT(options.variants, ElementsAre("naive", "cudnn_*:tf32"));
  EXPECT_THAT(texts(options.shapes), ElementsAre("n2c3h4w5k6", "n1c1h3w3k7"));
  EXPECT_THAT(options.fills, ElementsAre(Fill::wide, Fill::exact));
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_TRUE(options.check);
  EXPECT_FALSE(options.time);
  EXPECT_EQ(options.timeout_s, 7);
  EXPECT_EQ(options.timing.min_time_s, 0.25);
  EXPECT_EQ(options.timing.max_time_s, 2);
  EXPECT_EQ(options.timing.ci_half_width, 0.01);
  EXPECT_EQ(options.timing.duty_cycle, 1);
  EXPECT_EQ(options.timing.samples, 30);
  EXPECT_EQ(options.timing.cache, Cache::cold);
}

TEST_F(LoadConfig, LetsADefaultGiveWayToTheTimeThatIsGiven) {
  const TimingOptions shorter = load(R"({"timing": {"max_time_s": 0.05}})").timing;
  EXPECT_EQ(shorter.least_s(), 0.05);
  EXPECT_EQ(shorter.most_s(), 0.05);
  const TimingOptions longer = load(R"({"timing": {"min_time_s": 10}})").timing;
  EXPECT_EQ(longer.least_s(), 10);
  EXPECT_EQ(longer.most_s(), 10);
  const TimingOptions neither = load(R"({"timing": {"min_time_s": 0.5}})").timing;
  EXPECT_EQ(neither.most_s(), TimingOptions{}.most_s());
}

TEST_F(LoadConfig, MultipliesListsWithNSlowestAndKFastest) {
  const RunOptions options = load(R"({"shapes": [{"k": [5, 6], "n": [1, 2], "c": 1, "h": [3, 4], "w": 3}]})");
  EXPECT_THAT(texts(options.shapes), ElementsAre("n1c1h3w3k5", "n1c1h3w3k6", "n1c1h4w3k5", "n1c1h4w3k6",
                                                 "n2c1h3w3k5", "n2c1h3w3k6", "n2c1h4w3k5", "n2c1h4w3k6"));
}

TEST_F(LoadConfig, RunsAShapeOfTwoSweepsOnce) {
  const RunOptions options = load(
      R"({"shapes": [{"n": [1, 2], "c": 1, "h": 3, "w": 3, "k": 1}, "n2c1h3w3k1", "n3c1h3w3k1"],
          "fills": ["wide", "normal", "wide"]})");
  EXPECT_THAT(texts(options.shapes), ElementsAre("n1c1h3w3k1", "n2c1h3w3k1", "n3c1h3w3k1"));
  EXPECT_THAT(options.fills, ElementsAre(Fill::wide, Fill::normal));
}

TEST_F(LoadConfig, TakesAnIntegerHoweverItIsWritten) {
  const RunOptions options =
      load(R"({"shapes": [{"n": 1e1, "c": 64.0, "h": 3, "w": 3, "k": 1}], "seed": 7.0})");
  EXPECT_THAT(texts(options.shapes), ElementsAre("n10c64h3w3k1"));
  EXPECT_EQ(options.seed, 7u);
}

TEST_F(LoadConfig, TakesAsManyShapesAsItSays) {
  std::vector<std::size_t> batches(kMaxShapes);
  std::iota(batches.begin(), batches.end(), std::size_t{1});
  const std::string sweep =
      fmt::format(R"({{"n": [{}], "c": 1, "h": 3, "w": 3, "k": 1}})", fmt::join(batches, ","));
  EXPECT_EQ(load(fmt::format(R"({{"shapes": [{}]}})", sweep)).shapes.size(), kMaxShapes);
  try {
    load(fmt::format(R"({{"shapes": [{}, "n1c1h3w3k2"]}})", sweep));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/shapes/1: brings the file to more than 100000 shapes"));
  }
}

TEST_F(LoadConfig, EscapesKeysInPointers) {
  try {
    load(R"({"a/b~c": 1})");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(": /a~1b~0c: unknown key"));
  }
}

TEST_F(LoadConfig, SaysThatAFileIsNotThere) {
  EXPECT_EQ(refusal(file_), file_.string() + ": cannot be read: No such file or directory");
}

TEST_F(LoadConfig, SaysThatAFileIsADirectory) {
  EXPECT_EQ(refusal(kBadConfigs), kBadConfigs.string() + ": is a directory; want a file");
}

class BadConfigFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadConfigFile, GetsItsMessage) {
  const fs::path file = kBadConfigs / GetParam().file;
  EXPECT_EQ(refusal(file), file.string() + ": " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Plan, BadConfigFile, testing::ValuesIn(bad_files(kBadConfigs)),
                         [](const auto& test) { return test.param.name(); });

TEST(BadConfigFiles, AllHaveAMessage) {
  EXPECT_TRUE(each_has_its_message(kBadConfigs));
}

std::vector<fs::path> shipped_configs() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kShippedConfigs))
    if (entry.path().extension() == ".json" && entry.path().filename() != "tune.json")  // a tuning table
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

class ShippedConfig : public testing::TestWithParam<fs::path> {};

TEST_P(ShippedConfig, LoadsAndSaysWhyItExists) {
  const RunOptions options = load_config(GetParam());
  EXPECT_FALSE(options.shapes.empty());
  std::ifstream stream(GetParam());
  EXPECT_FALSE(nlohmann::json::parse(stream).at("why").get<std::string>().empty());
}

INSTANTIATE_TEST_SUITE_P(Plan, ShippedConfig, testing::ValuesIn(shipped_configs()),
                         [](const auto& test) { return test.param.stem().string(); });

TEST(EdgesConfig, HoldsTheEdgesAndStaysSmall) {
  const std::vector<Shape> shapes = load_config(kShippedConfigs / "edges.json").shapes;
  const auto holds = [&](auto predicate) { return std::ranges::any_of(shapes, predicate); };
  for (const std::int64_t c : {1, 3, 65}) EXPECT_TRUE(holds([&](const Shape& s) { return s.c == c; })) << c;
  for (const std::int64_t k : {1, 127, 129})
    EXPECT_TRUE(holds([&](const Shape& s) { return s.k == k; })) << k;
  EXPECT_TRUE(holds([](const Shape& s) { return s.n == 1; }));
  EXPECT_TRUE(holds([](const Shape& s) { return s.n > 1; }));
  EXPECT_TRUE(holds([](const Shape& s) { return s.h == 3 && s.w > 3; }));
  EXPECT_TRUE(holds([](const Shape& s) { return s.w == 3 && s.h > 3; }));
  for (const std::int64_t tile : {16, 32, 64})
    for (const std::int64_t off : {-1, 0, 1})
      EXPECT_TRUE(holds([&](const Shape& s) { return s.q() == tile + off; })) << tile << " " << off;
  for (const std::int64_t columns : {246, 250, 252, 256, 512, 514})
    EXPECT_TRUE(holds([&](const Shape& s) { return s.q() == columns && s.k > 64; })) << columns;
  for (const std::int64_t columns : {252, 256, 512})  // rows that a tensor copy reads in pairs
    EXPECT_TRUE(holds([&](const Shape& s) { return s.q() == columns && s.k > 64 && s.h % 2 == 0; }))
        << columns;
  for (const Shape& shape : shapes) EXPECT_LE(shape.multiply_adds(), 1e7) << to_string(shape);
}

}  // namespace
}  // namespace convmish
