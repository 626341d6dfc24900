#include "report/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "report/comparison_table.hpp"
#include "sample_reports.hpp"

namespace convmish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kAllowed = 0.03;
constexpr TerminalStyle kPlain{};

/// Samples spread evenly over 1 % around the median, in an order of chance.
CaseResult timed_case(const std::string& variant, double median_ms, std::mt19937_64& random,
                      std::size_t samples = 30) {
  CaseResult result = testing::passed_case(variant, MathClass::fp32, median_ms);
  std::vector<double> times(samples);
  for (double& time : times) time = median_ms * (0.995 + static_cast<double>(random() >> 11) * 0x1p-53 / 100);
  result.time_ms = summarise_samples(times);
  return result;
}

ReportComparison compare(const Report& before, const Report& after) {
  return compare_reports({"old.json", &before}, {"new.json", &after}, kAllowed);
}

std::string table_of(const Report& before, const Report& after, const TerminalStyle& style = kPlain) {
  return comparison_table(compare(before, after), kAllowed, style);
}

class Comparison : public ::testing::Test {
 protected:
  /// The same case in both, `factor` times as slow in the second.
  void add(const std::string& variant, double factor, std::size_t samples = 30) {
    before_.cases.push_back(timed_case(variant, 2, random_, samples));
    after_.cases.push_back(timed_case(variant, 2 * factor, random_, samples));
  }

  std::mt19937_64 random_{5};
  Report before_, after_;
};

TEST_F(Comparison, TellsFasterTieAndSlower) {
  add("faster", 0.9);
  add("same", 1);
  add("a_little_slower", 1.02);
  add("slower", 1.1);
  const ReportComparison comparison = compare(before_, after_);
  std::vector<TimeChange> changes;
  std::vector<bool> regressions;
  for (const CasePair& pair : comparison.pairs) {
    changes.push_back(pair.change);
    regressions.push_back(pair.regression);
  }
  EXPECT_THAT(changes,
              ElementsAre(TimeChange::faster, TimeChange::tie, TimeChange::slower, TimeChange::slower));
  EXPECT_THAT(regressions, ElementsAre(false, false, false, true)) << "2 % is allowed, 10 % is not";
  EXPECT_TRUE(comparison.has_regression());
  EXPECT_EQ(comparison_summary(comparison, kAllowed, kPlain),
            "1 faster, 2 slower (1 by more than 3%), 1 tied, 0 not judged");
}

TEST_F(Comparison, ALargeChangeThatIsNotSignificantIsATie) {
  add("noisy", 1);
  // Two modes 20 % apart, most samples in the one or in the other by chance.
  auto spread = [](CaseResult& result, int slow) {
    std::vector<double> times(21);
    for (int i = 0; i < 21; ++i) times[static_cast<std::size_t>(i)] = (i < slow ? 2.4 : 2) + i * 1e-4;
    result.time_ms = summarise_samples(times);
  };
  spread(before_.cases.front(), 10);
  spread(after_.cases.front(), 11);
  const ReportComparison comparison = compare(before_, after_);
  EXPECT_GT(*comparison.pairs.front().median_change, 0.1);
  EXPECT_EQ(comparison.pairs.front().change, TimeChange::tie);
  EXPECT_FALSE(comparison.has_regression());
}

TEST_F(Comparison, NothingChangedIsRarelyCalledAChange) {
  int wrong = 0;
  constexpr int kComparisons = 100;
  for (int i = 0; i < kComparisons; ++i) {
    before_.cases.clear();
    after_.cases.clear();
    for (int variant = 0; variant < 20; ++variant) add(std::to_string(variant), 1);
    const ReportComparison comparison = compare(before_, after_);
    wrong += std::ranges::any_of(comparison.pairs, [](auto& pair) { return pair.change != TimeChange::tie; });
  }
  EXPECT_LE(wrong, 10) << "5 of 100 by the level, for all 20 cases of each together";
}

TEST_F(Comparison, TimesThatCannotBeComparedAreNotJudged) {
  add("emulated", 2);
  after_.cases.back().emulated = true;
  add("untimed", 2);
  before_.cases.back().time_ms.reset();
  add("no_samples", 2);
  after_.cases.back().time_ms->samples.clear();
  add("few", 2, 3);
  add("noisy", 2);
  after_.cases.back().noise = "the SM clock moved by 9 %";
  add("unmeasurable", 2);
  before_.cases.back().time_ms = summarise_samples(std::vector<double>(30, 0.0));
  add("other_cache", 2);
  before_.cases.back().time_ms->cache = Cache::cold;
  after_.cases.back().time_ms->cache = Cache::hot;
  add("other_rests", 2);
  after_.cases.back().time_ms->duty_cycle = 0.5;
  const ReportComparison comparison = compare(before_, after_);
  std::vector<std::string> reasons;
  for (const CasePair& pair : comparison.pairs) {
    EXPECT_EQ(pair.change, TimeChange::not_judged);
    reasons.push_back(pair.not_judged);
  }
  EXPECT_THAT(reasons, ElementsAre("emulated", "no time in the old report", "no samples", "too few samples",
                                   "noisy in the new report", "too short for the clock in the old report",
                                   "timed with a cold cache, now with a hot one",
                                   "timed at a duty cycle of 100%, now at 50%"));
  EXPECT_FALSE(comparison.has_regression());
  EXPECT_THAT(table_of(before_, after_),
              HasSubstr("time not judged: emulated: emulated:fp32 on n64c64h256w256k128\n"));
}

TEST_F(Comparison, WhatIsNoLongerRightIsARegression) {
  for (const Verdict verdict :
       {Verdict::failed, Verdict::mistrusted, Verdict::crashed, Verdict::timed_out, Verdict::skipped}) {
    const Report before{.cases = {testing::passed_case("naive", MathClass::fp32, 2)}};
    Report after{.cases = {testing::failed_case("naive", MathClass::fp32)}};
    after.cases.front().verdict = verdict;
    EXPECT_EQ(compare(before, after).has_regression(), verdict != Verdict::skipped) << to_string(verdict);
    EXPECT_FALSE(compare(after, before).has_regression()) << "mended";
    EXPECT_FALSE(compare(after, after).has_regression()) << "it was so before";
  }
}

TEST_F(Comparison, WhatWasInterruptedIsARegression) {
  const Report before{.cases = {testing::passed_case("naive", MathClass::fp32, 2)}};
  Report after{.cases = {testing::skipped_case("naive", MathClass::fp32)}};
  EXPECT_FALSE(compare(before, after).has_regression()) << "for a reason that the variant declares";
  EXPECT_THAT(table_of(before, after), HasSubstr("passed -> skipped"));
  after.cases.front().reason = reason::interrupted;
  after.cases.front().detail = "the run ended before this case did";
  EXPECT_TRUE(compare(before, after).has_regression());
  EXPECT_THAT(table_of(before, after), HasSubstr("passed -> interrupted"));
  EXPECT_THAT(
      table_of(before, after),
      HasSubstr("\ninterrupted naive:fp32 on n64c64h256w256k128: passed before; the run ended before"));
  EXPECT_FALSE(compare(after, after).has_regression());
}

TEST_F(Comparison, ControlCharactersAreNotShown) {
  add("a\033[31m\nb\xC2\x9B", 1);
  before_.cases.push_back(timed_case("old\tgone\x7F", 2, random_));
  const std::string table = table_of(before_, after_);
  EXPECT_THAT(table, HasSubstr("a [31m b "));
  EXPECT_THAT(table, HasSubstr("only in the old report: old gone :fp32"));
  EXPECT_EQ(table.find_first_of("\033\t\x7F\xC2"), table.npos) << table;
}

TEST_F(Comparison, TellsVerdictsWithTheirRepetition) {
  const Report before{.cases = {testing::passed_case("tiled", MathClass::fp32, 2)}};
  const Report after{.cases = {testing::failed_case("tiled", MathClass::fp32)}};
  const std::string table = table_of(before, after);
  EXPECT_THAT(table, HasSubstr("passed -> failed"));
  EXPECT_THAT(table,
              HasSubstr("failed tiled:fp32 on n64c64h256w256k128: passed before; fill normal: 254 of"));
  EXPECT_THAT(table, HasSubstr("\n  repeat: convmish-bench --variant tiled:fp32\n"));
  EXPECT_EQ(comparison_summary(compare(before, after), kAllowed, kPlain),
            "0 faster, 0 slower, 0 tied, 1 not judged; 1 no longer right");
}

TEST_F(Comparison, MatchesByAllThatMakesACase) {
  add("naive", 1);
  CaseResult& moved = after_.cases.emplace_back(after_.cases.front());
  moved.layout = Layout::nhwc;
  after_.cases.emplace_back(after_.cases.front()).math_class = MathClass::tf32;
  after_.cases.emplace_back(after_.cases.front()).device = DeviceKind::cpu;
  after_.cases.emplace_back(after_.cases.front()).shape.n = 1;
  before_.cases.emplace_back(before_.cases.front()).variant = "gone";
  const ReportComparison comparison = compare(before_, after_);
  EXPECT_EQ(comparison.pairs.size(), 1u);
  EXPECT_EQ(comparison.only_before.size(), 1u);
  EXPECT_EQ(comparison.only_after.size(), 4u);
  const std::string table = table_of(before_, after_);
  EXPECT_THAT(table, HasSubstr("only in the old report: gone:fp32 on n64c64h256w256k128\n"));
  EXPECT_THAT(table, HasSubstr("only in the new report: naive:fp32 on n64c64h256w256k128, naive:tf32 on"));
}

TEST_F(Comparison, RefusesACaseThatStandsTwice) {
  add("naive", 1);
  after_.cases.push_back(after_.cases.front());
  try {
    compare(before_, after_);
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "new.json: naive:fp32 (nchw, cuda) on n64c64h256w256k128 stands twice; want each case once");
  }
}

TEST_F(Comparison, TellsWhatDiffersBetweenTheMachines) {
  add("naive", 1);
  EXPECT_THAT(table_of(before_, after_), Not(HasSubstr("differs")));
  before_.environment.driver = "580.95";
  after_.environment.driver = "590.44";
  after_.environment.cudnn = "9.19.0";
  EXPECT_THAT(table_of(before_, after_),
              HasSubstr("differs: driver 580.95, now 590.44; cuDNN none, now 9.19.0\n"));
}

TEST_F(Comparison, FitsTheWidth) {
  add("naive", 0.9);
  add("a_variant_of_a_long_name", 1.1);
  EXPECT_EQ(table_of(before_, after_),
            "all on n64c64h256w256k128\n"
            "\n"
            "variant                   class  verdict  old ms  new ms   change       p  outcome\n"
            "----------------------------------------------------------------------------------\n"
            "naive                     fp32   passed    1.997   1.800   -9.86%  <0.001  faster\n"
            "a_variant_of_a_long_name  fp32   passed    1.998   2.200  +10.14%  <0.001  slower!\n"
            "! slower by more than the 3% allowed\n");
  const std::string narrow = table_of(before_, after_, {.width = 50});
  EXPECT_THAT(narrow, HasSubstr("left out at this width: verdict, old ms, new ms, p\n"));
  EXPECT_THAT(table_of(before_, after_, {.colour = true}), HasSubstr("\033[31mslower!\033[0m"));
}

}  // namespace
}  // namespace convmish
