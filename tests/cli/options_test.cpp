#include "cli/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Arguments = std::vector<const char*>;

CommandLine parse(Arguments options) {
  options.insert(options.begin(), "convmish-bench");
  return parse_command_line(options);
}

std::string refusal(const Arguments& options) {
  try {
    parse(options);
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

TEST(CommandLine, RunsAllOnTheAutomaticDeviceByDefault) {
  const CommandLine line = parse({});
  EXPECT_EQ(line.verb, Verb::run);
  EXPECT_EQ(line.device, DeviceChoice{});
  EXPECT_THAT(line.run.variants, IsEmpty());
  EXPECT_THAT(line.run.shapes, IsEmpty());
  EXPECT_TRUE(line.run.check);
  EXPECT_TRUE(line.run.time);
  EXPECT_TRUE(line.report.json.empty());
}

TEST(CommandLine, ReadsEveryOption) {
  const CommandLine line = parse({"--variant",
                                  "naive,cudnn_*:tf32",
                                  "--shape",
                                  "n1c1h3w3k1",
                                  "--shape=k2w3h4c1n1",
                                  "--device",
                                  "cuda:3",
                                  "--fill",
                                  "wide,exact",
                                  "--seed",
                                  "7",
                                  "--no-check",
                                  "--min-time",
                                  "0.5",
                                  "--max-time=1e1",
                                  "--ci-half-width",
                                  "0.25%",
                                  "--samples",
                                  "50",
                                  "--cache",
                                  "hot",
                                  "--duty-cycle=25%",
                                  "--json",
                                  "out.json",
                                  "--csv",
                                  "out.csv",
                                  "--junit",
                                  "out.xml"});
  EXPECT_THAT(line.run.variants, ElementsAre("naive", "cudnn_*:tf32"));
  EXPECT_THAT(texts(line.run.shapes), ElementsAre("n1c1h3w3k1", "n1c1h4w3k2"));
  EXPECT_EQ(line.device, (DeviceChoice{DeviceChoice::Kind::cuda, 3}));
  EXPECT_THAT(line.run.fills, ElementsAre(Fill::wide, Fill::exact));
  EXPECT_EQ(line.run.seed, 7u);
  EXPECT_FALSE(line.run.check);
  EXPECT_EQ(line.run.timing.min_time_s, 0.5);
  EXPECT_EQ(line.run.timing.max_time_s, 10);
  EXPECT_EQ(line.run.timing.ci_half_width, 0.0025);
  EXPECT_EQ(line.run.timing.samples, 50);
  EXPECT_EQ(line.run.timing.cache, Cache::hot);
  EXPECT_EQ(line.run.timing.duty_cycle, 0.25);
  EXPECT_EQ(line.report.json, "out.json");
  EXPECT_EQ(line.report.csv, "out.csv");
  EXPECT_EQ(line.report.junit, "out.xml");
}

TEST(CommandLine, DoesNotDependOnTheOrderOfOptions) {
  // Pairs, so that an option and its value stay together.
  std::vector<std::array<const char*, 2>> pairs{{"--variant", "tiled"},
                                                {"--shape", "n1c1h3w3k1"},
                                                {"--seed", "9"},
                                                {"--device", "cpu"},
                                                {"--max-time", "8"}};
  std::ranges::sort(pairs);
  do {
    Arguments options;
    for (const auto& pair : pairs) options.insert(options.end(), pair.begin(), pair.end());
    const CommandLine line = parse(options);
    ASSERT_THAT(line.run.variants, ElementsAre("tiled"));
    ASSERT_THAT(texts(line.run.shapes), ElementsAre("n1c1h3w3k1"));
    ASSERT_EQ(line.run.seed, 9u);
    ASSERT_EQ(line.device.kind, DeviceChoice::Kind::cpu);
    ASSERT_EQ(line.run.timing.max_time_s, 8);
  } while (std::ranges::next_permutation(pairs).found);
}

TEST(CommandLine, LetsTheLastOfASwitchWin) {
  EXPECT_FALSE(parse({"--check", "--no-check"}).run.check);
  EXPECT_TRUE(parse({"--no-check", "--check"}).run.check);
  EXPECT_EQ(parse({"--seed", "1", "--seed", "2"}).run.seed, 2u);
}

TEST(CommandLine, KeepsTheCacheOfTheGpuApartFromKeptCeilings) {
  EXPECT_TRUE(parse({"--cache", "cold"}).kept_ceilings);
  EXPECT_FALSE(parse({"--no-kept-ceilings"}).kept_ceilings);
  EXPECT_FALSE(parse({"--no-kept-ceilings"}).run.timing.cache);
  EXPECT_FALSE(parse({"selftest", "--no-kept-ceilings"}).kept_ceilings);
}

TEST(CommandLine, JoinsRepeatedLists) {
  EXPECT_THAT(parse({"--fill", "wide", "--fill", "exact,wide"}).run.fills,
              ElementsAre(Fill::wide, Fill::exact));
  EXPECT_THAT(parse({"--variant", "naive", "--variant", "tiled"}).run.variants,
              ElementsAre("naive", "tiled"));
  EXPECT_THAT(texts(parse({"--shape", "n1c1h3w3k1", "--shape", "n1c1h3w3k1"}).run.shapes),
              ElementsAre("n1c1h3w3k1"));
}

TEST(CommandLine, WinsOverTheConfigFileWhereverThatIsNamed) {
  const auto file = std::filesystem::path(testing::TempDir()) / "command_line_wins.json";
  std::ofstream(file)
      << R"({"variants": ["naive"], "shapes": ["n1c1h3w3k1", "n2c1h3w3k1"], "seed": 5, "time": false})";
  for (const Arguments& options : {Arguments{"--config", file.c_str(), "--shape", "n3c1h3w3k1", "--time"},
                                   Arguments{"--shape", "n3c1h3w3k1", "--time", "--config", file.c_str()}}) {
    const CommandLine line = parse(options);
    EXPECT_THAT(line.run.variants, ElementsAre("naive"));
    EXPECT_THAT(texts(line.run.shapes), ElementsAre("n3c1h3w3k1"));
    EXPECT_EQ(line.run.seed, 5u);
    EXPECT_TRUE(line.run.time);
  }
  std::filesystem::remove(file);
}

TEST(CommandLine, TakesAMaxTimeBelowTheDefaultMinTime) {
  const TimingOptions timing = parse({"--max-time", "0.05"}).run.timing;
  EXPECT_EQ(timing.least_s(), 0.05);
  EXPECT_EQ(timing.most_s(), 0.05);
  EXPECT_EQ(parse({"--ci-half-width", "0.01"}).run.timing.ci_half_width, 0.01);
  EXPECT_EQ(parse({"--cache", "auto"}).run.timing.cache, std::nullopt);
}

TEST(CommandLine, TakesTolerancesBesideTheStrictRule) {
  const auto tolerances = parse({"--tolerance", "kernelbench", "--tolerance", "strict", "--tolerance",
                                 "rtol=1e-4,atol=1e-5", "--tolerance", "kernelbench"})
                              .run.tolerances;
  ASSERT_EQ(tolerances.size(), 2u) << "strict is always told, and a rule once";
  EXPECT_EQ(tolerances[0].kind, Tolerance::Kind::kernelbench);
  EXPECT_EQ(to_string(tolerances[1]), "rtol=0.0001,atol=1e-05");
  EXPECT_EQ(parse_tolerance(to_string(tolerances[1])), tolerances[1]);
}

TEST(CommandLine, TakesVerbsAsWordsAndAsOptions) {
  EXPECT_EQ(parse({"run", "--seed", "3"}).verb, Verb::run);
  EXPECT_EQ(parse({"list"}).verb, Verb::list);
  EXPECT_EQ(parse({"--list"}).verb, Verb::list);
  EXPECT_EQ(parse({"calibrate"}).verb, Verb::calibrate);
  EXPECT_EQ(parse({"--calibrate", "--device", "cpu"}).verb, Verb::calibrate);
  EXPECT_EQ(parse({"--version"}).verb, Verb::version);
  EXPECT_EQ(parse({"version"}).verb, Verb::version);
  EXPECT_EQ(parse({"help"}).verb, Verb::help);
  EXPECT_EQ(parse({"-h"}).verb, Verb::help);
}

TEST(CommandLine, HelpsBeforeItComplainsOfValues) {
  EXPECT_EQ(parse({"--shape", "nonsense", "--config", "/nonexistent", "--help"}).verb, Verb::help);
  EXPECT_EQ(parse({"explain", "tiled", "naive", "-h"}).verb, Verb::help);
  EXPECT_EQ(parse({"list", "--seed", "x", "--version"}).verb, Verb::version);
}

TEST(CommandLine, ReadsDevices) {
  using Kind = DeviceChoice::Kind;
  EXPECT_EQ(parse({"--device", "auto"}).device, (DeviceChoice{Kind::automatic, 0}));
  EXPECT_EQ(parse({"--device", "cpu"}).device, (DeviceChoice{Kind::cpu, 0}));
  EXPECT_EQ(parse({"--device", "cuda"}).device, (DeviceChoice{Kind::cuda, 0}));
  EXPECT_EQ(parse({"--device", "cuda:12"}).device, (DeviceChoice{Kind::cuda, 12}));
}

struct Refused {
  Arguments options;
  const char* why;
};

class RefusedCommandLine : public testing::TestWithParam<Refused> {};

TEST_P(RefusedCommandLine, SaysWhatIsWrong) {
  EXPECT_EQ(refusal(GetParam().options), GetParam().why);
}

constexpr const char* kDeviceHint = "; want auto, cpu, cuda or cuda:INDEX, as in cuda:0";

INSTANTIATE_TEST_SUITE_P(
    Options, RefusedCommandLine,
    testing::Values(Refused{{"--shpe", "x"}, "unknown option \"--shpe\"; closest: --shape"},
                    Refused{{"--variants=naive"}, "unknown option \"--variants\"; closest: --variant"},
                    Refused{{"-shape", "n1c1h3w3k1"}, "unknown option \"-shape\"; closest: --shape"},
                    Refused{{"--nocheck"}, "unknown option \"--nocheck\"; closest: --no-check"},
                    Refused{{"--quux"}, "unknown option \"--quux\"; convmish-bench --help lists all"},
                    Refused{{"-"}, "unknown option \"-\"; convmish-bench --help lists all"}));

INSTANTIATE_TEST_SUITE_P(
    StrayWords, RefusedCommandLine,
    testing::Values(Refused{{"lst"}, "\"lst\" is neither an option nor a command; closest: list"},
                    Refused{{"naive"},
                            "\"naive\" is neither an option nor a command; want one of "
                            "run, list, selftest, compare, draw, verify, calibrate, explain, version, help"},
                    Refused{{""},
                            "\"\" is neither an option nor a command; want one of run, "
                            "list, selftest, compare, draw, verify, calibrate, explain, version, help"},
                    Refused{{"run", "naive"}, "unexpected \"naive\" behind run"},
                    Refused{
                        {"--", "naive"},
                        "\"naive\" is neither an option nor a command; want one of "
                        "run, list, selftest, compare, draw, verify, calibrate, explain, version, help"}));

INSTANTIATE_TEST_SUITE_P(
    Values, RefusedCommandLine,
    testing::Values(
        Refused{{"--shape"}, "--shape wants SHAPE"},
        Refused{{"--json", "--check"}, "--json wants FILE, not the option --check"},
        Refused{{"--json", ""}, "--json is empty; want FILE"},
        Refused{{"--json="}, "--json is empty; want FILE"},
        Refused{{"--check=false"}, "--check takes no value, but was given \"false\""},
        Refused{
            {"--shape", "n1c1h2w3k1"},
            "--shape: shape \"n1c1h2w3k1\": h is 2; want an integer of at least 3 (3x3 filter, no padding)"},
        Refused{{"--variant", "naive,,tiled"},
                "--variant: \"naive,,tiled\" has an empty item; want names separated by single commas"},
        Refused{{"--variant", "naive:fp23"}, "--variant: unknown math class \"fp23\"; closest: fp32"},
        Refused{{"--fill", "nromal"}, "--fill: unknown fill \"nromal\"; closest: normal"},
        Refused{{"--seed", "-5"}, "--seed: got \"-5\"; want an integer from 0 to 18446744073709551615"},
        Refused{{"--seed", "18446744073709551616"},
                "--seed: got \"18446744073709551616\"; want an integer from 0 to 18446744073709551615"},
        Refused{{"--min-time", "0"}, "--min-time: got \"0\"; want seconds, above 0 and at most 86400"},
        Refused{{"--min-time", "1s"}, "--min-time: got \"1s\"; want seconds, above 0 and at most 86400"},
        Refused{{"--max-time", "nan"}, "--max-time: got \"nan\"; want seconds, above 0 and at most 86400"},
        Refused{{"--timeout", "0"}, "--timeout: got \"0\"; want whole seconds from 1 to 86400"},
        Refused{{"--timeout", "1.5"}, "--timeout: got \"1.5\"; want whole seconds from 1 to 86400"},
        Refused{{"--max-time", "inf"}, "--max-time: got \"inf\"; want seconds, above 0 and at most 86400"},
        Refused{
            {"--ci-half-width", "100%"},
            "--ci-half-width: got \"100%\"; want a share of the median between 0 and 1, as in 0.005 or 0.5%"},
        Refused{{"--duty-cycle", "0"},
                "--duty-cycle: got \"0\"; want a share of the time from 0.01 to 1, as in 0.5 or 50%"},
        Refused{{"--duty-cycle", "101%"},
                "--duty-cycle: got \"101%\"; want a share of the time from 0.01 to 1, as in 0.5 or 50%"},
        Refused{
            {"--ci-half-width", "%"},
            "--ci-half-width: got \"%\"; want a share of the median between 0 and 1, as in 0.005 or 0.5%"},
        Refused{{"--samples", "0"}, "--samples: got \"0\"; want an integer from 1 to 1000000"},
        Refused{{"--samples", "9.5"}, "--samples: got \"9.5\"; want an integer from 1 to 1000000"},
        Refused{{"--cache", "warm"}, "--cache: got \"warm\"; want auto, hot or cold"},
        Refused{{"--min-time", "0.1", "--max-time", "0.05"},
                "the min time, 0.1 s, is longer than the max time, 0.05 s; want it no longer"},
        Refused{{"--min-time", "3", "--max-time", "2"},
                "the min time, 3 s, is longer than the max time, 2 s; want it no longer"},
        Refused{
            {"--tolerance", "rtol=1e-4,atol=-1"},
            "--tolerance: got \"rtol=1e-4,atol=-1\"; want strict, kernelbench or rtol=R,atol=A with R and A "
            ">= 0, as in rtol=1e-4,atol=1e-5"},
        Refused{
            {"--tolerance", "rtol=1e-4,atol=inf"},
            "--tolerance: got \"rtol=1e-4,atol=inf\"; want strict, kernelbench or rtol=R,atol=A with R and A "
            ">= 0, as in rtol=1e-4,atol=1e-5"},
        Refused{{"--tolerance", "kernelbench", "--no-check"},
                "a tolerance is asked for, but check is off; want the check on"},
        Refused{{"--no-check", "--no-time"},
                "check and time are both off, which leaves nothing to do; want at least one"}));

TEST(CommandLine, RefusesOtherDevices) {
  for (const char* const device : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:99999999999", "cuda0", "CPU"})
    EXPECT_EQ(refusal({"--device", device}), "--device: got \"" + std::string(device) + "\"" + kDeviceHint);
}

TEST(CommandLine, RefusesWhatAVerbWouldIgnore) {
  EXPECT_EQ(refusal({"list", "--variant", "naive"}), "--variant is an option of run, not of list");
  EXPECT_EQ(refusal({"--list", "--no-check"}), "--no-check is an option of run, not of list");
  EXPECT_EQ(refusal({"selftest", "--variant", "naive"}), "--variant is an option of run, not of selftest");
  EXPECT_EQ(refusal({"list", "--seed", "7"}),
            "--seed is an option of run, selftest, draw and verify, not of list");
  EXPECT_EQ(refusal({"list", "--config", "/nonexistent"}), "--config is an option of run, not of list");
  EXPECT_EQ(refusal({"version", "foo"}), "unexpected \"foo\" behind version");
  EXPECT_EQ(refusal({"version", "--json", "x"}),
            "--json is an option of run, selftest and verify, not of version");
  EXPECT_EQ(refusal({"help", "list"}), "unexpected \"list\" behind help");
  EXPECT_EQ(refusal({"help", "--shape", "x"}),
            "--shape is an option of run, draw, verify and explain, not of help");
  EXPECT_EQ(parse({"selftest", "--seed", "7", "--device", "cpu", "--json", "out.json"}).run.seed, 7u);
}

TEST(CommandLine, TakesTheWordsOfAVerb) {
  const CommandLine line = parse({"compare", "--max-slowdown", "1.5%", "old.json", "new.json", "--force"});
  EXPECT_EQ(line.verb, Verb::compare);
  EXPECT_THAT(line.operands, ElementsAre("old.json", "new.json"));
  EXPECT_EQ(line.gate.max_slowdown, 0.015);
  EXPECT_TRUE(line.gate.force);
  EXPECT_EQ(refusal({"compare", "old.json"}), "want compare OLD NEW");
  EXPECT_EQ(refusal({"compare", "a", "b", "c"}), "unexpected \"c\" behind compare OLD NEW");
}

TEST(CommandLine, TakesTheVariantToExplain) {
  const CommandLine line = parse({"explain", "tiled:fp32", "--shape", "n1c1h3w3k1", "--device", "cpu"});
  EXPECT_EQ(line.verb, Verb::explain);
  EXPECT_THAT(line.operands, ElementsAre("tiled:fp32"));
  EXPECT_THAT(texts(line.run.shapes), ElementsAre("n1c1h3w3k1"));
  EXPECT_EQ(refusal({"explain"}), "want explain VARIANT");
  EXPECT_EQ(refusal({"explain", "tiled", "naive"}), "unexpected \"naive\" behind explain VARIANT");
  EXPECT_EQ(refusal({"explain", "tiled", "--seed", "7"}),
            "--seed is an option of run, selftest, draw and verify, not of explain");
}

TEST(CommandLine, TakesTensorsToVerify) {
  const CommandLine line =
      parse({"verify", "--tensors", "out", "--math-class", "tf32", "--layout", "nhwc", "--device", "cpu"});
  EXPECT_EQ(line.verb, Verb::verify);
  EXPECT_THAT(line.tensors.folders, ElementsAre("out"));
  EXPECT_EQ(line.tensors.math, MathClass::tf32);
  EXPECT_EQ(line.tensors.y_layout, Layout::nhwc);
  EXPECT_EQ(parse({"verify", "--tensors", "out"}).tensors.math, MathClass::fp32);
  EXPECT_EQ(refusal({"--tensors", "out"}), "--tensors is an option of draw and verify, not of run");
  EXPECT_EQ(refusal({"verify", "--math-class", "fp64"}),
            "--math-class: unknown math class \"fp64\"; closest: fp32");
}

TEST(CommandLine, TakesOutputsOfDrawnOperandsToVerify) {
  const std::vector<const char*> operands{"verify", "--tensors", "a",         "--tensors",
                                          "b",      "--shape",   "n1c1h3w3k1"};
  const auto with = [&operands](std::vector<const char*> more) {
    std::vector<const char*> words = operands;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const CommandLine line = parse(with({"--fill", "normal,wide", "--seed", "7", "--algorithm", "transform"}));
  EXPECT_THAT(line.tensors.folders, ElementsAre("a", "b"));
  EXPECT_THAT(line.run.fills, ElementsAre(Fill::normal, Fill::wide));
  EXPECT_EQ(line.run.seed, 7u);
  EXPECT_EQ(line.tensors.algorithm, Algorithm::transform);
  EXPECT_EQ(refusal(with({})),
            "verify takes --shape and --fill together: the operands are then those that draw writes");
  EXPECT_EQ(refusal({"verify", "--tensors", "a", "--seed", "7"}),
            "--seed says nothing to verify without --shape and --fill");
}

TEST(CommandLine, ARunCanBeHeldAgainstABaseline) {
  const CommandLine line = parse({"--baseline", "old.json", "--max-slowdown", "0%"});
  EXPECT_EQ(line.baseline, "old.json");
  EXPECT_EQ(line.gate.max_slowdown, 0);
  EXPECT_EQ(refusal({"--max-slowdown", "3%"}), "--max-slowdown says nothing without --baseline FILE");
  EXPECT_EQ(refusal({"--force"}), "--force says nothing without --baseline FILE");
  EXPECT_EQ(refusal({"--force=yes", "--baseline", "old.json"}),
            "--force takes no value, but was given \"yes\"");
  for (const char* const slowdown : {"3", "-1%", "nan%", "%", "1e9%"})
    EXPECT_EQ(refusal({"--baseline", "old.json", "--max-slowdown", slowdown}),
              "--max-slowdown: got \"" + std::string(slowdown) +
                  "\"; want a percentage from 0% to 1000%, as in 3%");
}

TEST(CommandLine, TellsAnOptionsMistakeBeforeItReadsTheConfig) {
  EXPECT_EQ(refusal({"--config", "/nonexistent/x.json", "--seed", "-5"}),
            "--seed: got \"-5\"; want an integer from 0 to 18446744073709551615");
}

TEST(CommandLine, TellsAConfigsMistakeByItsFile) {
  EXPECT_EQ(refusal({"--config", "/nonexistent/x.json"}),
            "/nonexistent/x.json: cannot be read: No such file or directory");
}

TEST(HelpText, NamesEveryOptionThatIsParsed) {
  const std::string help = help_text();
  for (const char* const option :
       {"--variant",    "--shape",     "--config",     "--device",   "--fill",     "--seed",
        "--[no-]check", "--[no-]time", "--timeout",    "--min-time", "--max-time", "--ci-half-width",
        "--samples",    "--cache",     "--duty-cycle", "--json",     "--baseline", "--max-slowdown",
        "--force",      "--list",      "--version"})
    EXPECT_THAT(help, HasSubstr(option));
  for (const char* const heading : {"Usage", "Verbs", "Examples", "Exit codes"})
    EXPECT_THAT(help, HasSubstr(heading));
}

TEST(HelpText, FitsAHundredColumns) {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace convmish
