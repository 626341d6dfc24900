#include "report/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sample_reports.hpp"

namespace convmish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TerminalStyle kPlain{};

std::string table_of(const Report& report, const TerminalStyle& style = kPlain) {
  return shape_table(report.cases, report.environment.device, report.plan.baseline, style);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The lines of the grid below its rule, without the blank ones between classes.
std::vector<std::string> rows_of(const std::string& table) {
  const auto lines = lines_of(table);
  auto line = std::ranges::find_if(lines, [](auto& text) { return text.starts_with("---"); });
  std::vector<std::string> rows;
  for (++line; line != lines.end(); ++line) {
    if (line->empty() && (line + 1 == lines.end() || words_of(*(line + 1)).size() < 3 ||
                          (line + 1)->starts_with("!") || (line + 1)->starts_with("*") ||
                          (line + 1)->starts_with("left out") || (line + 1)->find(": ") != std::string::npos))
      break;
    if (!line->empty()) rows.push_back(*line);
  }
  return rows;
}

std::string title_line(const std::string& table) {
  const auto lines = lines_of(table);
  return *(std::ranges::find_if(lines, [](auto& text) { return text.starts_with("---"); }) - 1);
}

TEST(ShapeTable, HeaderTellsTheCounts) {
  const auto lines = lines_of(table_of(testing::gpu_report()));
  EXPECT_EQ(
      lines[0],
      "NVIDIA H200 (cuda:0)  n64c64h256w256k128  608.8 GFLOP  3.188 GB least traffic  528515072 outputs");
  EXPECT_EQ(lines[1],
            "seed 42  fills kernelbench normal  cache hot  duty cycle 50%  "
            "speed-up over cudnn_unfused of the same class");
}

TEST(ShapeTable, HeaderOfOneOutput) {
  Report report = testing::gpu_report();
  for (CaseResult& result : report.cases) result.shape = {.n = 1, .c = 1, .h = 3, .w = 3, .k = 1};
  EXPECT_THAT(lines_of(table_of(report))[0], ::testing::EndsWith("traffic  1 output"));
}

TEST(ShapeTable, FastestFirstWithinAClass) {
  std::vector<std::string> order;
  for (const std::string& row : rows_of(table_of(testing::gpu_report())))
    order.push_back(words_of(row)[0] + ":" + words_of(row)[1]);
  EXPECT_THAT(order, ElementsAre("hopper_fp16x3:fp32", "cudnn_fused_mish:fp32", "cudnn_unfused:fp32",
                                 "naive:fp32", "coarsened_1x2:fp32", "tiled:fp32", "register_blocked:fp32",
                                 "hopper_fp16x1:tf32", "cudnn_graph_fused:tf32", "cudnn_unfused:tf32",
                                 "cudnn_inplace_mish:tf32", "mine:bf16", "mine_unrolled:bf16"));
}

TEST(ShapeTable, ARowHoldsTheFigures) {
  const Report report{.cases = {testing::passed_case("naive", MathClass::fp32, 91.8)}};
  const std::string table = table_of(report);
  EXPECT_EQ(words_of(title_line(table)), words_of("variant class verdict ratio max abs ms 95% CI min ms "
                                                  "TFLOP/s GB/s floor bound by speed-up prepare ms n"));
  // 608.85 GFLOP and 3.188 GB in 91.8 ms; the largest error is that of the first fill, the ratio that of all.
  EXPECT_THAT(words_of(rows_of(table)[0]),
              ElementsAre("naive", "fp32", "passed", "0.50", "1.9e-6", "91.80", "+-0.20%", "91.34", "6.63",
                          "34.7", "0.82%", "dram", "0.08x", "1.50", "6"));
}

TEST(ShapeTable, OnlyWhatPassedHasATime) {
  CaseResult wrong = testing::failed_case("tiled", MathClass::fp32);
  wrong.time_ms = testing::passed_case("tiled", MathClass::fp32, 0.001).time_ms;
  const Report report{.cases = {wrong, testing::passed_case("naive", MathClass::fp32, 91.8)}};
  const auto rows = rows_of(table_of(report));
  EXPECT_THAT(rows[0], HasSubstr("naive"));
  EXPECT_THAT(words_of(rows[1]), ElementsAre("tiled", "fp32", "failed", "inf", "1.9e-6", "-", "-", "-", "-",
                                             "-", "-", "-", "-", "1.50", "-"));
}

TEST(ShapeTable, FailuresAreToldWithTheirRepetition) {
  const std::string table = table_of(testing::gpu_report(), {.width = 60});
  EXPECT_THAT(table,
              HasSubstr("failed register_blocked:fp32: fill normal: 254 of 16516096\n  outputs are wrong"));
  EXPECT_THAT(table,
              HasSubstr("\n  repeat: convmish-bench --variant mine:bf16 --shape n64c64h256w256k128\n"));
  EXPECT_THAT(table, HasSubstr("mistrusted cudnn_inplace_mish:tf32: fill normal: an output\n  of 0"));
}

TEST(ShapeTable, SkippedComesLastWithItsReason) {
  const auto lines = lines_of(table_of(testing::gpu_report()));
  EXPECT_EQ(lines.back(),
            "skipped cudnn_inplace_mish:fp32: needs 9200000000 bytes of device memory, 8000000000 are free");
  const Report nothing{.cases = {testing::skipped_case("naive", MathClass::fp32)}};
  EXPECT_THAT(table_of(nothing), Not(HasSubstr("variant")));
}

TEST(ShapeTable, TolerancesAreToldBesideTheVerdict) {
  const std::string table = table_of(testing::gpu_report());
  EXPECT_THAT(table, HasSubstr("\ntiled:fp32 by kernelbench: passed on kernelbench against float64 (max abs "
                               "1.9e-6), failed on kernelbench against tf32 (812 of 10485760 outputs beyond, "
                               "max abs 4.5e-4)\n"
                               "tiled:fp32 by rtol=0.0001,atol=1e-05: passed on normal against float64"));
  EXPECT_THAT(table_of(testing::cpu_report()), Not(HasSubstr(" by ")));
}

TEST(ShapeTable, DeltaTellsTheActivationAlone) {
  const std::string table = table_of(testing::cpu_report());
  EXPECT_THAT(table, HasSubstr("\nactivation of naive:fp32: at most 5.25 ULP off, at z = -1.25; not finite "
                               "from z = 44.5 on\n"
                               "activation of onednn_fused:fp32: at most 5.25 ULP off, at z = -1.25; finite "
                               "everywhere\n"));
  EXPECT_THAT(table_of(testing::gpu_report()), Not(HasSubstr("activation of")));
}

TEST(ShapeTable, LayoutIsShownWhereItDiffers) {
  EXPECT_THAT(title_line(table_of(testing::gpu_report())), HasSubstr("layout"));
  EXPECT_THAT(title_line(table_of(testing::cpu_report())), Not(HasSubstr("layout")));
}

TEST(ShapeTable, EmulatedTimesAreMarked) {
  const std::string table = table_of(testing::cpu_report());
  const auto rows = rows_of(table);
  EXPECT_THAT(words_of(rows[0])[5], "0.09210");
  EXPECT_THAT(words_of(rows[1])[5], "*41.50000");
  EXPECT_THAT(table, HasSubstr("* emulated: "));
  EXPECT_THAT(table_of(testing::gpu_report()), Not(HasSubstr("emulated")));
}

TEST(ShapeTable, TimeLimitIsMarked) {
  const std::string table = table_of(testing::gpu_report());
  EXPECT_THAT(table, HasSubstr("!+-8.33%"));
  EXPECT_THAT(table, HasSubstr("! not converged: stopped by the time limit"));
  EXPECT_THAT(table_of(testing::cpu_report()), Not(HasSubstr("time limit")));

  // Launches so long that the limit leaves too few of them for an interval.
  Report report{.cases = {testing::passed_case("naive", MathClass::fp32, 800)}};
  report.cases[0].time_ms->ci95.reset();
  report.cases[0].time_ms->converged = false;
  EXPECT_THAT(words_of(rows_of(table_of(report))[0]), ::testing::Contains("!"));
  EXPECT_THAT(table_of(report), HasSubstr("! not converged"));
}

TEST(ShapeTable, NoiseAndRemarksAreTold) {
  const std::string table = table_of(testing::gpu_report());
  EXPECT_THAT(table, HasSubstr("~1.200"));
  EXPECT_THAT(table, HasSubstr("\n~ noisy: "));
  EXPECT_THAT(
      table,
      HasSubstr("\nnoisy hopper_fp16x1:tf32: the SM clock went from 1755 to 1980 MHz; clocks were "
                "held down (hw_thermal); measured twice\n"
                "hopper_fp16x3:fp32: in 3 of 6 samples the device may have waited for the host, which is "
                "slow to enqueue a launch; their times hold the wait\n"
                "hopper_fp16x3:fp32: no floor: the device's ceilings: out of memory\n"));
  EXPECT_THAT(table_of(testing::cpu_report()), Not(HasSubstr("noisy")));
}

TEST(ShapeTable, RecomputedOutputsAreTold) {
  EXPECT_THAT(table_of(testing::gpu_report()),
              HasSubstr("\nhopper_fp16x1:tf32: recomputed outputs that its fast way cannot serve: 768 of "));
  EXPECT_THAT(table_of(testing::cpu_report()), Not(HasSubstr("recomputed")));
}

TEST(ShapeTable, AConfigurationIsToldUnlessTheRuleChoseIt) {
  Report report = testing::cpu_report();
  auto& choice = report.cases[0].configuration;
  const std::string name = report.cases[0].variant + ":" + std::string(to_string(report.cases[0].math_class));
  choice = {.name = "8x8", .by = ChosenBy::rule};
  EXPECT_THAT(table_of(report), Not(HasSubstr("configuration")));
  choice->by = ChosenBy::table;
  EXPECT_THAT(table_of(report), HasSubstr("\n" + name + ": configuration 8x8, of the tuning table\n"));
  choice->by = ChosenBy::tuning;
  choice->timed = {{"8x8", 1.5}, {"4x4", 2}};
  EXPECT_THAT(table_of(report), HasSubstr(": configuration 8x8, fastest of 2 (8x8 1.5 ms, 4x4 2 ms)\n"));
}

TEST(ShapeTable, ARatioBeyondOneIsNotRoundedToIt) {
  Report report = testing::cpu_report();
  CaseResult& row = report.cases[0];
  row.verdict = row.checks[0].verdict = Verdict::failed;
  row.checks[0].error.worst_ratio = 1.0004;
  EXPECT_THAT(table_of(report), HasSubstr(" >1.00 "));
}

TEST(ShapeTable, AFillThatDecidesNothingIsToldAndIsNoFigure) {
  for (const Verdict verdict : {Verdict::skipped, Verdict::mistrusted}) {
    Report report = testing::cpu_report();
    CaseResult& row = report.cases[0];
    ASSERT_EQ(row.verdict, Verdict::passed);
    const std::string before = table_of(report);
    FillResult check{.fill = Fill::special, .verdict = verdict, .detail = "it spreads NaN"};
    row.checks.insert(row.checks.begin(), check);
    const std::string after = table_of(report);
    EXPECT_THAT(after, HasSubstr(": not judged on special: it spreads NaN\n"));
    EXPECT_EQ(rows_of(after), rows_of(before)) << "ratio and max abs are of fills that were judged";
  }
}

TEST(ShapeTable, UncheckedIsNotPassed) {
  const Report report = testing::untimed_report();
  EXPECT_THAT(words_of(rows_of(table_of(report))[0]), ElementsAre("naive", "fp32", "unchecked", "-"));
  EXPECT_EQ(summary_line(report.cases, kPlain), "0 passed, 0 skipped, 0 failed, 1 not checked");
}

class ShapeTableWidth : public ::testing::TestWithParam<int> {};

TEST_P(ShapeTableWidth, IsKept) {
  const int width = GetParam();
  const std::string table = table_of(testing::gpu_report(), {.width = width});
  for (const std::string& line : lines_of(table))
    if (!line.starts_with("  repeat: ")) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
    }
  for (const char* needed : {"variant", "verdict", "ms"}) EXPECT_THAT(title_line(table), HasSubstr(needed));
  EXPECT_THAT(table, HasSubstr("left out at this width: "));
  EXPECT_THAT(table, HasSubstr("cudnn_inplace_mish"));  // names are never cut
}

INSTANTIATE_TEST_SUITE_P(Columns, ShapeTableWidth, ::testing::Values(60, 80, 120));

TEST(ShapeTable, ColumnsLeaveByNeed) {
  const auto titles = [](int width) { return title_line(table_of(testing::gpu_report(), {.width = width})); };
  EXPECT_THAT(titles(60), HasSubstr("speed-up"));
  EXPECT_THAT(titles(60), Not(HasSubstr("GB/s")));
  EXPECT_THAT(titles(80), HasSubstr("floor"));
  EXPECT_THAT(titles(120), HasSubstr("TFLOP/s"));
  EXPECT_THAT(table_of(testing::gpu_report()), Not(HasSubstr("left out")));  // not a terminal: all of them
}

TEST(ShapeTable, ColourOnlyWhereAsked) {
  EXPECT_THAT(table_of(testing::gpu_report()), Not(HasSubstr("\033")));
  const std::string coloured = table_of(testing::gpu_report(), {.colour = true});
  EXPECT_THAT(coloured, HasSubstr("\033[32mpassed\033[0m"));
  EXPECT_THAT(coloured, HasSubstr("\033[31mfailed\033[0m"));
  EXPECT_THAT(coloured, HasSubstr("\033[33mmistrusted\033[0m"));
  // Colour changes nothing else.
  std::string stripped = coloured;
  for (const char* code : {"\033[31m", "\033[32m", "\033[33m", "\033[0m"})
    for (auto at = stripped.find(code); at != std::string::npos; at = stripped.find(code))
      stripped.erase(at, std::string_view(code).size());
  EXPECT_EQ(stripped, table_of(testing::gpu_report()));
}

TEST(ShapeTable, NamesBeyondAsciiKeepTheColumns) {
  Report report{.cases = {testing::passed_case("naïve_µ", MathClass::fp32, 2),
                          testing::passed_case("naive_u", MathClass::fp32, 3)}};
  const auto rows = rows_of(table_of(report));
  EXPECT_EQ(rows[0].find("fp32"), rows[1].find("fp32") + 2);  // two letters of two bytes each
}

TEST(ShapeTable, NoCasesNoTable) {
  EXPECT_EQ(table_of(Report()), "");
}

TEST(SummaryLine, CountsVerdicts) {
  EXPECT_EQ(summary_line({}, kPlain), "0 passed, 0 skipped, 0 failed");
  EXPECT_EQ(summary_line(testing::gpu_report().cases, kPlain),
            "9 passed, 1 skipped, 1 failed, 1 mistrusted, 1 crashed, 1 timed out");
  EXPECT_EQ(summary_line(testing::cpu_report().cases, {.colour = true}),
            "\033[32m2 passed, 0 skipped, 0 failed\033[0m");
}

TEST(TableLegend, FitsATerminal) {
  const std::string legend = table_legend(testing::gpu_report().cases, {.width = 60});
  EXPECT_NE(legend.find("floor"), std::string::npos);
  for (const std::string& line : lines_of(legend)) EXPECT_LE(line.size(), 60u);
}

TEST(TableLegend, ExplainsNoColumnThatIsNotThere) {
  Report untimed = testing::gpu_report();
  for (CaseResult& result : untimed.cases) result.time_ms.reset();
  const std::string legend = table_legend(untimed.cases, kPlain);
  EXPECT_NE(legend.find("ratio"), std::string::npos);
  EXPECT_EQ(legend.find("floor"), std::string::npos);
  EXPECT_EQ(table_legend({}, kPlain), "");
}

TEST(TerminalStyleOf, AFileIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const TerminalStyle style = terminal_style(fileno(file));
  std::fclose(file);
  EXPECT_FALSE(style.colour);
  EXPECT_EQ(style.width, TerminalStyle::kUnlimited);
}

}  // namespace
}  // namespace convmish
