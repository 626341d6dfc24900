#include "report/junit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "report/valid_text.hpp"
#include "sample_reports.hpp"

namespace convmish {
namespace {

pugi::xml_document parse(const Report& report) {
  pugi::xml_document document;
  const auto result = document.load_string(to_junit(report).c_str());
  EXPECT_TRUE(result) << result.description();
  return document;
}

pugi::xml_node suite_of(const pugi::xml_document& document) {
  return document.child("testsuites").child("testsuite");
}

/// The element that says how a case ended; "passed" where there is none.
std::string outcome_of(const CaseResult& result) {
  const pugi::xml_document document = parse({.cases = {result}});
  const pugi::xml_node told = suite_of(document).child("testcase").first_child();
  return told ? told.name() : "passed";
}

TEST(JUnit, OnlyWhatWasCheckedAndIsRightPasses) {
  CaseResult result = testing::passed_case("naive", MathClass::fp32, 2);
  EXPECT_EQ(outcome_of(result), "passed");
  const auto checks = result.checks;
  result.checks.clear();
  EXPECT_EQ(outcome_of(result), "skipped") << "unchecked";
  result.checks = checks;
  for (const auto& [verdict, outcome] : {std::pair(Verdict::failed, "failure"),
                                         {Verdict::mistrusted, "failure"},
                                         {Verdict::crashed, "error"},
                                         {Verdict::timed_out, "error"},
                                         {Verdict::skipped, "skipped"}}) {
    result.verdict = verdict;
    EXPECT_EQ(outcome_of(result), outcome) << to_string(verdict);
  }
}

TEST(JUnit, CountsWhatItHolds) {
  const pugi::xml_document document = parse(testing::gpu_report());
  const pugi::xml_node suite = suite_of(document);
  EXPECT_STREQ(suite.attribute("name").value(), "n64c64h256w256k128");
  EXPECT_EQ(suite.attribute("tests").as_int(), 14);
  EXPECT_EQ(suite.attribute("failures").as_int(), 2) << "one failed, one mistrusted";
  EXPECT_EQ(suite.attribute("errors").as_int(), 2) << "one crashed, one timed out";
  EXPECT_EQ(suite.attribute("skipped").as_int(), 1);
  const auto tests = suite.children("testcase");
  EXPECT_EQ(std::distance(tests.begin(), tests.end()), 14);
}

TEST(JUnit, ASuiteAShape) {
  Report report{.cases = {testing::passed_case("naive", MathClass::fp32, 2),
                          testing::passed_case("tiled", MathClass::fp32, 2),
                          testing::passed_case("naive", MathClass::fp32, 2)}};
  report.cases.back().shape.n = 1;
  const pugi::xml_document document = parse(report);
  std::vector<std::string> suites;
  for (const pugi::xml_node suite : document.child("testsuites").children())
    suites.push_back(suite.attribute("name").value() + std::string("/") + suite.attribute("tests").value());
  EXPECT_THAT(suites, ::testing::ElementsAre("n64c64h256w256k128/2", "n1c64h256w256k128/1"));
}

TEST(JUnit, TellsTheCauseTheTimeAndTheRepetition) {
  const Report report{.cases = {testing::passed_case("tiled", MathClass::fp32, 2.5),
                                testing::failed_case("naive", MathClass::fp32)}};
  const pugi::xml_document document = parse(report);
  const pugi::xml_node passed = suite_of(document).child("testcase"), failed = passed.next_sibling();
  EXPECT_STREQ(passed.attribute("name").value(), "tiled:fp32");
  EXPECT_STREQ(passed.attribute("time").value(), "0.002500000") << "seconds";
  const pugi::xml_node failure = failed.child("failure");
  EXPECT_STREQ(failure.attribute("type").value(), "outside_tolerance");
  EXPECT_EQ(failure.attribute("message").value(), report.cases[1].detail);
  EXPECT_STREQ(failure.text().get(), "repeat: convmish-bench --variant naive:fp32");
}

TEST(JUnit, EscapesWhatAVariantBrings) {
  Report report;
  report.cases.push_back(testing::failed_case("naive", MathClass::fp32));
  std::string& detail = report.cases.front().detail;
  detail = "<&>\"'\x01\x1f\xff tail";
  const pugi::xml_document document = parse(report);
  EXPECT_STREQ(suite_of(document).child("testcase").child("failure").attribute("message").value(),
               "<&>\"'\uFFFD\uFFFD\uFFFD tail");
}

TEST(XmlText, KeepsWhatXmlCanHold) {
  EXPECT_EQ(valid_text("plain\ttext\nof \u00fc and \U0001F600"), "plain\ttext\nof \u00fc and \U0001F600");
  EXPECT_EQ(valid_text(std::string_view("\0\x08\x0b", 3)), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(valid_text("\xEF\xBF\xBE\xEF\xBF\xBF"), "\uFFFD\uFFFD") << "U+FFFE and U+FFFF";
  EXPECT_EQ(valid_text("\xC3"
                       "A"),
            "\uFFFDA")
      << "a character that is cut short";
  EXPECT_EQ(valid_text("\xED\xA0\x80").substr(0, 3), "\uFFFD") << "a surrogate";
  EXPECT_EQ(valid_text("\xE2\x82"), "\uFFFD\uFFFD") << "cut short at the end";
}

}  // namespace
}  // namespace convmish
