#include <gtest/gtest.h>

#include "cli/selftest_verdict.hpp"

namespace convmish {
namespace {

CaseResult with(Verdict verdict) {
  CaseResult result;
  result.verdict = verdict;
  result.detail = "of the case";
  return result;
}

TEST(SelftestVerdict, CatchesByAVerdictAgainstTheMutantOnly) {
  for (const Verdict verdict : {Verdict::failed, Verdict::crashed, Verdict::timed_out})
    EXPECT_TRUE(is_caught(with(verdict)));
  for (const Verdict verdict : {Verdict::passed, Verdict::mistrusted, Verdict::skipped})
    EXPECT_FALSE(is_caught(with(verdict)));
}

TEST(SelftestVerdict, RejectsByAnyVerdictButPassedAndSkipped) {
  for (const Verdict verdict : {Verdict::passed, Verdict::skipped}) EXPECT_FALSE(is_rejected(with(verdict)));
  for (const Verdict verdict : {Verdict::failed, Verdict::mistrusted, Verdict::crashed, Verdict::timed_out})
    EXPECT_TRUE(is_rejected(with(verdict)));
}

TEST(SelftestVerdict, NamesTheFirstFillThatDecided) {
  CaseResult result = with(Verdict::failed);
  result.checks = {{.fill = Fill::kernelbench},
                   {.fill = Fill::wide, .verdict = Verdict::failed, .detail = "first"},
                   {.fill = Fill::tails, .verdict = Verdict::failed, .detail = "second"}};
  EXPECT_EQ(first_finding(result).where, "wide");
  EXPECT_EQ(first_finding(result).detail, "first");
}

TEST(SelftestVerdict, NamesTheStepWhereNoFillDecided) {
  CaseResult timed = with(Verdict::failed);
  timed.checks = {{.fill = Fill::kernelbench}};
  EXPECT_EQ(first_finding(timed).where, "timing");
  EXPECT_EQ(first_finding(with(Verdict::crashed)).where, "isolation");
  EXPECT_EQ(first_finding(with(Verdict::timed_out)).detail, "of the case");
  EXPECT_EQ(first_finding(with(Verdict::passed)).where, "");
}

}  // namespace
}  // namespace convmish
