#include "report/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "core/input_text.hpp"
#include "report/files.hpp"
#include "sample_reports.hpp"
#include "scratch_folder.hpp"

namespace convmish {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::ScratchFolder;

json json_of(const CaseResult& result) {
  return json::parse(to_json_line(result));
}

/// The message with which a case that was changed by `change` is refused.
template <class Change>
std::string refusal(Change change) {
  json document = json_of(testing::passed_case("naive", MathClass::fp32, 1.5));
  change(document);
  try {
    case_from_json(document.dump(), "worker");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

class JsonReport : public ::testing::TestWithParam<std::string> {};

TEST_P(JsonReport, ReadsBackToTheSameText) {
  const ScratchFolder folder;
  const Report report = testing::sample_reports().at(GetParam());
  const auto path = folder.path() / "report.json";
  write_file(path, to_json(report));
  const Report back = read_report(path);
  EXPECT_EQ(to_json(back), to_json(report));
  EXPECT_EQ(back.cases.size(), report.cases.size());
  EXPECT_EQ(back.environment.tool_version, report.environment.tool_version);
  EXPECT_EQ(back.environment.git_revision, report.environment.git_revision);
  EXPECT_EQ(back.environment.device.memory_bytes, report.environment.device.memory_bytes);
  EXPECT_EQ(back.environment.device.compute_capability(), report.environment.device.compute_capability());
  EXPECT_EQ(back.plan.options.shapes, report.plan.options.shapes);
  EXPECT_EQ(back.plan.options.seed, report.plan.options.seed);
  EXPECT_EQ(back.schema_version, kSchemaVersion);
  EXPECT_EQ(to_json(report_from_json(to_json(report), "worker")), to_json(report));
}

INSTANTIATE_TEST_SUITE_P(Samples, JsonReport, ::testing::Values("small", "gpu", "cpu", "untimed"),
                         [](const auto& instance) { return instance.param; });

TEST(JsonCase, IsOneLine) {
  EXPECT_EQ(to_json_line(testing::failed_case("tiled", MathClass::tf32)).find('\n'), std::string::npos);
}

TEST(JsonCase, KeepsEveryMember) {
  CaseResult a = testing::failed_case("tiled", MathClass::tf32);
  a.time_ms = testing::passed_case("tiled", MathClass::tf32, 1.0 / 3).time_ms;
  a.layout = Layout::nhwc;
  a.emulated = true;
  a.algorithm = Algorithm::transform;
  a.floor_ms = 0.1;
  a.percent_of_floor = 30.3;
  a.binding_ceiling = "ffma";
  a.speedup = 1.25;
  a.configuration = {.name = "64x128", .by = ChosenBy::tuning, .timed = {{"64x128", 1.0 / 3}, {"32x32", 2}}};
  a.note = "tile 64x128";
  a.remarks = {"one", "another"};
  a.clocks = ClockTrace{.before_sample = {0, 4},
                        .sm_mhz = {1980, std::nullopt},
                        .power_w = {std::nullopt, 1.0 / 3},
                        .temperature_c = {51, 58},
                        .limits = {{}, {ClockLimit::power_brake}}};
  a.noise = "the SM clock went";
  a.time_ms->host_gaps = 2;
  a.remeasured = true;
  a.seed = std::numeric_limits<std::uint64_t>::max();
  const CaseResult b = case_from_json(to_json_line(a), "worker");

  EXPECT_EQ(std::tie(b.variant, b.math_class, b.layout, b.device, b.emulated, b.shape, b.seed, b.fills),
            std::tie(a.variant, a.math_class, a.layout, a.device, a.emulated, a.shape, a.seed, a.fills));
  EXPECT_EQ(std::tie(b.verdict, b.reason, b.detail, b.algorithm, b.note, b.repeat),
            std::tie(a.verdict, a.reason, a.detail, a.algorithm, a.note, a.repeat));
  EXPECT_EQ(std::tie(b.floor_ms, b.percent_of_floor, b.binding_ceiling, b.speedup, b.prepare_ms),
            std::tie(a.floor_ms, a.percent_of_floor, a.binding_ceiling, a.speedup, a.prepare_ms));
  EXPECT_EQ(std::tie(b.workspace_bytes, b.plan_bytes), std::tie(a.workspace_bytes, a.plan_bytes));

  EXPECT_EQ(std::tie(b.noise, b.remeasured, b.remarks), std::tie(a.noise, a.remeasured, a.remarks));

  ASSERT_TRUE(b.time_ms && b.launch && b.clocks && b.configuration);
  EXPECT_EQ(std::tie(b.configuration->name, b.configuration->by),
            std::tie(a.configuration->name, a.configuration->by));
  ASSERT_EQ(b.configuration->timed.size(), 2u);
  EXPECT_EQ(b.configuration->timed[0].name, "64x128");
  EXPECT_EQ(b.configuration->timed[0].median_ms, 1.0 / 3);
  const ClockTrace &u = *a.clocks, &v = *b.clocks;
  EXPECT_EQ(std::tie(v.before_sample, v.sm_mhz, v.power_w, v.temperature_c, v.limits),
            std::tie(u.before_sample, u.sm_mhz, u.power_w, u.temperature_c, u.limits));
  const TimeSummary &s = *a.time_ms, &t = *b.time_ms;
  EXPECT_EQ(std::tie(t.median, t.mean, t.min, t.p5, t.p95, t.stddev, t.ci95, t.converged, t.cache,
                     t.duty_cycle, t.host_gaps, t.samples),
            std::tie(s.median, s.mean, s.min, s.p5, s.p95, s.stddev, s.ci95, s.converged, s.cache,
                     s.duty_cycle, s.host_gaps, s.samples));
  const LaunchGeometry &g = *a.launch, &h = *b.launch;
  EXPECT_THAT(h.grid, ::testing::ElementsAreArray(g.grid));
  EXPECT_THAT(h.block, ::testing::ElementsAreArray(g.block));
  EXPECT_EQ(std::tie(h.cluster, h.shared_bytes, h.registers, h.local_bytes, h.blocks_per_multiprocessor),
            std::tie(g.cluster, g.shared_bytes, g.registers, g.local_bytes, g.blocks_per_multiprocessor));

  ASSERT_EQ(b.checks.size(), a.checks.size());
  for (std::size_t i = 0; i < a.checks.size(); ++i) {
    const FillResult &c = a.checks[i], &d = b.checks[i];
    EXPECT_EQ(
        std::tie(d.fill, d.seed, d.batch, d.verdict, d.reason, d.detail, d.repeatable, d.recomputed_outputs),
        std::tie(c.fill, c.seed, c.batch, c.verdict, c.reason, c.detail, c.repeatable, c.recomputed_outputs));
    const ErrorSummary &e = c.error, &f = d.error;
    EXPECT_EQ(
        std::tie(f.compared, f.wrong, f.nan_outputs, f.worst_ratio, f.p999_ratio, f.max_abs, f.max_rel),
        std::tie(e.compared, e.wrong, e.nan_outputs, e.worst_ratio, e.p999_ratio, e.max_abs, e.max_rel));
    EXPECT_EQ(
        std::tie(f.max_ulp, f.relative_frobenius, f.fingerprint, f.consistent_with, f.zero_accepted_share),
        std::tie(e.max_ulp, e.relative_frobenius, e.fingerprint, e.consistent_with, e.zero_accepted_share));
    EXPECT_EQ(f.first_wrong_at.has_value(), e.first_wrong_at.has_value());
    ASSERT_EQ(d.forensics.has_value(), c.forensics.has_value());
  }
  const Forensics &o = *a.checks.back().forensics, &r = *b.checks.back().forensics;
  EXPECT_EQ(std::tie(r.wrong_share, r.nan_share, r.poison_share, r.wrong_above_z, r.wrong_below_z, r.matches,
                     r.matches_everywhere),
            std::tie(o.wrong_share, o.nan_share, o.poison_share, o.wrong_above_z, o.wrong_below_z, o.matches,
                     o.matches_everywhere));
  ASSERT_EQ(r.places.size(), o.places.size());
  for (std::size_t i = 0; i < o.places.size(); ++i) {
    const WrongPlace &place = r.places[i], &of = o.places[i];
    EXPECT_EQ(std::tie(place.axis, place.first, place.last, place.period),
              std::tie(of.axis, of.first, of.last, of.period));
  }
}

TEST(JsonCase, KeepsWhatWasToldBeside) {
  const CaseResult a = testing::gpu_report().cases[1];
  const CaseResult b = case_from_json(to_json_line(a), "worker");
  ASSERT_EQ(b.tolerances.size(), 3u);
  for (std::size_t i = 0; i < a.tolerances.size(); ++i) {
    const ToleranceResult &s = a.tolerances[i], &t = b.tolerances[i];
    EXPECT_EQ(std::tie(t.name, t.fill, t.against, t.compared, t.violations, t.max_abs, t.verdict),
              std::tie(s.name, s.fill, s.against, s.compared, s.violations, s.max_abs, s.verdict));
  }
  const ErrorSummary activation =
      case_from_json(to_json_line(testing::cpu_report().cases[0]), "worker").checks[2].error;
  EXPECT_EQ(activation.activation_ulp, 5.25);
  EXPECT_EQ(activation.activation_ulp_z, -1.25);
  EXPECT_EQ(activation.first_nonfinite_z, 44.5);
}

TEST(JsonCase, ReadsAnEarlierMinorVersion) {
  json document = json_of(testing::failed_case("tiled", MathClass::fp32));
  document.erase("tolerances");
  document["time_ms"] = json_of(testing::passed_case("tiled", MathClass::fp32, 1))["time_ms"];
  document["time_ms"].erase("cache");
  document["time_ms"].erase("duty_cycle");
  document["time_ms"].erase("host_gaps");
  for (const char* key : {"clocks", "noisy", "noise", "remeasured", "remarks"}) document.erase(key);
  for (json& check : document["checks"]) {
    check.erase("forensics");
    check.erase("recomputed_outputs");
    check["error"].erase("activation_ulp");
    check["error"].erase("activation_ulp_z");
    check["error"].erase("first_nonfinite_z");
  }
  const CaseResult result = case_from_json(document.dump(), "worker");
  EXPECT_TRUE(result.tolerances.empty());
  EXPECT_FALSE(result.checks.back().forensics);
  EXPECT_FALSE(result.checks.back().recomputed_outputs);
  EXPECT_FALSE(result.time_ms->cache);
  EXPECT_FALSE(result.time_ms->duty_cycle);
}

TEST(JsonCase, ClocksAreToldByTheirRangeAndTheirTrace) {
  const auto cases = testing::gpu_report().cases;
  const auto noisy = std::ranges::find(cases, "hopper_fp16x1", &CaseResult::variant);
  const json told = json_of(*noisy);
  EXPECT_EQ(told["noisy"], true);
  EXPECT_EQ(told["clocks"]["sm_mhz"], json::parse("[1755, 1980]"));
  EXPECT_EQ(told["clocks"]["limits"], json::parse(R"(["sw_power_cap", "hw_thermal"])"));
  EXPECT_EQ(told["clocks"]["trace"]["sm_mhz"], json::parse("[1980, 1755, null]"));
  EXPECT_EQ(told["clocks"]["trace"]["before_sample"], json::parse("[0, 2, 6]"));

  const json without = json_of(testing::passed_case("naive", MathClass::fp32, 2));
  EXPECT_TRUE(without["clocks"].is_null());
  EXPECT_TRUE(without["noisy"].is_null()) << "not known";
}

TEST(JsonCase, DoublesKeepTheirBits) {
  CaseResult result = testing::passed_case("naive", MathClass::fp32, 1);
  const std::vector<double> samples{0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1 + 0x1p-52, 0};
  result.time_ms->samples = samples;
  const CaseResult back = case_from_json(to_json_line(result), "worker");
  EXPECT_EQ(back.time_ms->samples, samples);
  EXPECT_TRUE(std::signbit(back.checks[0].error.worst_at->pre_activation));  // -0 of the sample
}

TEST(JsonCase, NumbersThatJsonLacksAreStrings) {
  const CaseResult failed = testing::failed_case("tiled", MathClass::fp32);
  const json error = json_of(failed)["error"];
  EXPECT_EQ(error["worst_ratio"], "inf");
  EXPECT_EQ(error["worst_at"]["found"], "nan");
  EXPECT_EQ(error["worst_at"]["pre_activation"], "-inf");

  const ErrorSummary back = case_from_json(to_json_line(failed), "worker").checks.back().error;
  EXPECT_EQ(back.worst_ratio, HUGE_VAL);
  EXPECT_TRUE(std::isnan(back.worst_at->found));
  EXPECT_EQ(back.worst_at->pre_activation, -HUGE_VAL);
}

TEST(JsonCase, WhatWasNotMeasuredIsNull) {
  const json skipped = json_of(testing::skipped_case("cudnn_unfused", MathClass::fp32));
  for (const char* key : {"error", "time_ms", "floor_ms", "binding_ceiling", "percent_of_floor", "speedup",
                          "prepare_ms", "workspace_bytes", "plan_bytes", "launch", "note", "repeat"})
    EXPECT_TRUE(skipped.at(key).is_null()) << key;
  EXPECT_TRUE(skipped["checks"].empty());

  const json passed = json_of(testing::passed_case("naive", MathClass::fp32, 2));
  EXPECT_TRUE(passed["reason"].is_null());
  EXPECT_TRUE(passed["checks"][0]["error"]["fingerprint"].is_null());  // of `kernelbench`: not taken
  EXPECT_EQ(passed["workspace_bytes"], 0);                             // measured, and none
}

TEST(JsonCase, RecomputedOutputsAreToldWhereTheVariantTellsThem) {
  const auto cases = testing::gpu_report().cases;
  const json told = json_of(*std::ranges::find(cases, "hopper_fp16x1", &CaseResult::variant));
  EXPECT_EQ(told["checks"][0]["recomputed_outputs"], 0);
  EXPECT_EQ(told["checks"][1]["recomputed_outputs"], 768);
  EXPECT_TRUE(json_of(cases.front())["checks"][0].at("recomputed_outputs").is_null());
}

TEST(JsonCase, SkippedCheckHasNoError) {
  const CaseResult result = testing::cpu_report().cases.front();
  const json check = json_of(result)["checks"].back();
  EXPECT_EQ(check["verdict"], "skipped");
  EXPECT_TRUE(check["error"].is_null());
  EXPECT_TRUE(check["repeatable"].is_null());
}

TEST(JsonCase, FillAndErrorAreThoseOfTheDecidingCheck) {
  CaseResult result = testing::passed_case("naive", MathClass::fp32, 2);
  EXPECT_EQ(json_of(result)["fill"], "normal");  // ratio 0.5 against 0.25
  EXPECT_EQ(json_of(result)["error"]["worst_ratio"], 0.5);
  result.checks[0].verdict = Verdict::mistrusted;  // proves nothing, beside one that passed
  EXPECT_EQ(json_of(result)["fill"], "normal");
  result.verdict = Verdict::mistrusted;
  EXPECT_EQ(json_of(result)["fill"], "kernelbench");
  result.checks[1].verdict = Verdict::failed;
  EXPECT_EQ(json_of(result)["fill"], "normal");
  result.checks[0].verdict = Verdict::failed;
  EXPECT_EQ(json_of(result)["fill"], "kernelbench");  // the first of those that failed
  result.checks.clear();
  EXPECT_EQ(json_of(result)["fill"], "kernelbench");  // the fill of the timed launches
  EXPECT_TRUE(json_of(result)["error"].is_null());
}

TEST(JsonCase, MistakesAreToldWithTheirPlace) {
  EXPECT_EQ(refusal([](json&) {}), "accepted");
  EXPECT_EQ(refusal([](json& c) { c["added_later"] = 1; }), "accepted");
  EXPECT_EQ(refusal([](json& c) { c.erase("seed"); }), "worker: has no key \"seed\"");
  EXPECT_EQ(refusal([](json& c) { c["shape"].erase("k"); }), "worker: /shape: has no key \"k\"");
  EXPECT_THAT(refusal([](json& c) { c["verdict"] = "pased"; }),
              HasSubstr("worker: /verdict: unknown verdict \"pased\"; closest: passed"));
  EXPECT_EQ(refusal([](json& c) { c["shape"]["n"] = 1.5; }).substr(0, 31), "worker: /shape/n: is 1.5; want ");
  EXPECT_THAT(refusal([](json& c) { c["seed"] = -1; }), HasSubstr("/seed: is -1; want an integer from 0"));
  EXPECT_EQ(refusal([](json& c) { c["checks"][1]["error"]["max_abs"] = "big"; }),
            "worker: /checks/1/error/max_abs: is \"big\"; want a number, \"nan\", \"inf\" or \"-inf\"");
  EXPECT_EQ(refusal([](json& c) { c["time_ms"]["ci95"] = {1}; }),
            "worker: /time_ms/ci95: is an array; want an array of 2");
  EXPECT_EQ(refusal([](json& c) { c = json::array(); }), "worker: is an empty array; want an object");
}

TEST(JsonCase, TimesAndShapesAreThoseThatCanBe) {
  for (const json& bad : {json("nan"), json("inf"), json(-1e-9)}) {
    const std::string why = " is " + bad.dump() + "; want a number of at least 0";
    EXPECT_EQ(refusal([&](json& c) { c["time_ms"]["samples"][2] = bad; }),
              "worker: /time_ms/samples/2:" + why);
    EXPECT_EQ(refusal([&](json& c) { c["time_ms"]["ci95"][1] = bad; }), "worker: /time_ms/ci95/1:" + why);
    for (const char* key : {"median", "mean", "min", "p5", "p95", "stddev"})
      EXPECT_EQ(refusal([&](json& c) { c["time_ms"][key] = bad; }),
                std::string("worker: /time_ms/") + key + ":" + why);
    for (const char* key : {"floor_ms", "prepare_ms"})
      EXPECT_EQ(refusal([&](json& c) { c[key] = bad; }), std::string("worker: /") + key + ":" + why);
  }
  EXPECT_EQ(refusal([](json& c) { c["time_ms"]["samples"][0] = 0; }), "accepted") << "a coarse clock";

  EXPECT_EQ(refusal([](json& c) { c["shape"]["n"] = -1; }),
            "worker: /shape/n: is -1; want an integer of at least 1");
  EXPECT_THAT(refusal([](json& c) { c["shape"]["h"] = 2; }),
              HasSubstr("/shape/h: is 2; want an integer of at least 3"));
  EXPECT_THAT(refusal([](json& c) { c["shape"]["n"] = c["shape"]["c"] = 1LL << 40; }),
              ::testing::StartsWith("worker: /shape: "));
}

TEST(JsonCase, TextThatIsNotJsonIsRefused) {
  // Half a line is what a worker that was killed leaves.
  const std::string line = to_json_line(testing::passed_case("naive", MathClass::fp32, 1));
  EXPECT_THROW(case_from_json(line.substr(0, line.size() / 2), "worker"), InputError);
  EXPECT_THROW(case_from_json("", "worker"), InputError);
}

TEST(JsonCase, GivenTensorsHaveNoSeed) {
  const Report report = testing::given_report();
  const json told = json_of(report.cases.front());
  EXPECT_TRUE(told["seed"].is_null());
  EXPECT_TRUE(told["checks"][0]["seed"].is_null());
  EXPECT_TRUE(json::parse(to_json(report))["plan"]["seed"].is_null());
}

TEST(JsonReportFile, RuleOfTheTimingIsToldWhereOneWasAskedFor) {
  Report report = testing::small_report();
  EXPECT_FALSE(json::parse(to_json(report))["plan"]["timing"].is_null());
  report.plan.options.time = false;
  EXPECT_TRUE(json::parse(to_json(report))["plan"]["timing"].is_null());
}

TEST(JsonReportFile, KeepsCeilings) {
  const Report report = testing::gpu_report();
  const Report back = report_from_json(to_json(report), "worker");
  ASSERT_TRUE(back.ceilings);
  for (const auto rate : kCeilingRates) {
    EXPECT_EQ(back.ceilings->measured.rates.*rate, report.ceilings->measured.rates.*rate);
    EXPECT_EQ(back.ceilings->data_sheet.*rate, report.ceilings->data_sheet.*rate);
  }
  EXPECT_EQ(back.ceilings->measured.gap, report.ceilings->measured.gap);
  EXPECT_EQ(back.ceilings->measured_at, report.ceilings->measured_at);

  json document = json::parse(to_json(report));
  document.erase("ceilings");  // as of 1.1
  EXPECT_FALSE(report_from_json(document.dump(), "worker").ceilings);
}

TEST(JsonReportFile, OtherMajorVersionIsRefused) {
  const ScratchFolder folder;
  const auto path = folder.path() / "report.json";
  const auto outcome = [&](const json& version) -> std::string {
    json document = json::parse(to_json(testing::small_report()));
    document["schema_version"] = version;
    write_file(path, document.dump());
    try {
      const SchemaVersion read = read_report(path).schema_version;
      return std::to_string(read.major) + "." + std::to_string(read.minor);
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(outcome("1.7"), "1.7");
  EXPECT_EQ(outcome("2.0"), path.string() + ": /schema_version: is \"2.0\"; want \"1.x\"");
  EXPECT_THAT(outcome("1"), HasSubstr("want \"MAJOR.MINOR\""));
  EXPECT_THAT(outcome("1.0.0"), HasSubstr("want \"MAJOR.MINOR\""));
  EXPECT_THAT(outcome(1.0), HasSubstr("want \"MAJOR.MINOR\""));
}

TEST(JsonReportFile, BadUtf8CostsCharactersNotTheReport) {
  Report report = testing::small_report();
  report.environment.command_line = "convmish-bench --json '\xff.json'";
  EXPECT_THAT(to_json(report), HasSubstr("'\xEF\xBF\xBD.json'"));  // U+FFFD
}

/// The report as a whole: names, order, nulls, layout. After a change that is meant, look at the
/// difference and write it with CONVMISH_UPDATE_GOLDEN=1.
TEST(JsonReportFile, MatchesTheGoldenFile) {
  const std::filesystem::path golden = CONVMISH_TEST_FOLDER "/golden/small.json";
  const std::string text = to_json(testing::small_report());
  if (std::getenv("CONVMISH_UPDATE_GOLDEN") != nullptr) write_file(golden, text);
  std::ifstream file(golden);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str());
}

/// The schema's lists of words are those of the code.
template <class Enum>
void expect_words(const json& schema, const char* name) {
  EXPECT_EQ(schema["$defs"][name]["enum"].get<std::vector<std::string>>(), spellings<Enum>()) << name;
}

TEST(ReportSchema, HasTheWordsOfTheCode) {
  const json schema = json::parse(std::ifstream(CONVMISH_REPORT_SCHEMA));
  expect_words<DeviceKind>(schema, "device_kind");
  expect_words<MathClass>(schema, "math_class");
  expect_words<Layout>(schema, "layout");
  expect_words<Algorithm>(schema, "algorithm");
  expect_words<Axis>(schema, "axis");
  expect_words<Fill>(schema, "fill");
  expect_words<Verdict>(schema, "verdict");
  expect_words<ClockLimit>(schema, "clock_limit");
  expect_words<ChosenBy>(schema, "choice");
  EXPECT_EQ(schema["properties"]["schema_version"]["enum"].back(),
            json::parse(to_json(Report()))["schema_version"]);
}

}  // namespace
}  // namespace convmish
