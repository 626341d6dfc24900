#include "report/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sample_reports.hpp"

namespace convmish {
namespace {

using ::testing::Each;
using ::testing::SizeIs;
using Row = std::vector<std::string>;

/// Reads RFC 4180 as strictly as it is written: CRLF ends a row, a quote inside quotes is doubled.
std::vector<Row> parse(const std::string& csv) {
  std::vector<Row> rows(1, Row(1));
  bool inside = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    std::string& cell = rows.back().back();
    if (inside && csv.compare(i, 2, "\"\"") == 0) {
      cell += csv[i++];
    } else if (csv[i] == '"') {
      EXPECT_TRUE(inside || cell.empty()) << "a quote within a cell";
      inside = !inside;
    } else if (!inside && csv[i] == ',') {
      rows.back().emplace_back();
    } else if (!inside && csv.compare(i, 2, "\r\n") == 0) {
      ++i;
      rows.emplace_back(1);
    } else {
      cell += csv[i];
    }
  }
  EXPECT_EQ(rows.back(), Row(1)) << "the last row has no end";
  rows.pop_back();
  return rows;
}

std::map<std::string, std::string> first_case(const Report& report) {
  const auto rows = parse(to_csv(report));
  std::map<std::string, std::string> cells;
  for (std::size_t i = 0; i < rows.at(0).size(); ++i) cells[rows[0][i]] = rows.at(1).at(i);
  EXPECT_EQ(cells.size(), rows[0].size()) << "a column's name stands twice";
  return cells;
}

TEST(Csv, ARowACaseAndACellAColumn) {
  const Report report = testing::gpu_report();
  const auto rows = parse(to_csv(report));
  EXPECT_EQ(rows.size(), 1 + report.cases.size());
  EXPECT_THAT(rows, Each(SizeIs(rows.front().size())));
}

TEST(Csv, HoldsTheFigures) {
  auto cells = first_case({.environment = testing::gpu_report().environment,
                           .cases = {testing::passed_case("naive", MathClass::fp32, 91.8)}});
  EXPECT_EQ(cells["device"], "cuda");
  EXPECT_EQ(cells["device_name"], "NVIDIA H200");
  EXPECT_EQ(cells["variant"], "naive");
  EXPECT_EQ(cells["n"] + "/" + cells["k"], "64/128");
  EXPECT_EQ(cells["verdict"], "passed");
  EXPECT_EQ(cells["fill"], "normal");
  EXPECT_EQ(cells["worst_ratio"], "0.5");
  EXPECT_EQ(cells["median_ms"], "91.8");
  EXPECT_EQ(cells["samples"], "6");
  EXPECT_EQ(cells["workspace_bytes"], "0");
}

TEST(Csv, TellsWhatMakesATimeDoubtful) {
  CaseResult noisy = testing::passed_case("naive", MathClass::fp32, 91.8);
  noisy.noise = "the SM clock went from 1755 to 1980 MHz";
  noisy.remeasured = true;
  noisy.time_ms->host_gaps = 2;
  noisy.remarks = {"one", "another"};
  Report report = testing::gpu_report();
  report.cases = {noisy};
  auto cells = first_case(report);
  EXPECT_EQ(cells["noise"], noisy.noise);
  EXPECT_EQ(cells["remeasured"], "true");
  EXPECT_EQ(cells["host_gaps"], "2");
  EXPECT_EQ(cells["remarks"], "one; another");
}

TEST(Csv, WhatWasNotMeasuredIsEmpty) {
  auto cells = first_case(testing::untimed_report());
  for (const char* const name : {"device_name", "reason", "fill", "worst_ratio", "median_ms", "ci95_low_ms",
                                 "samples", "floor_ms", "speedup", "workspace_bytes"})
    EXPECT_EQ(cells.at(name), "") << name;
  EXPECT_EQ(cells["verdict"], "unchecked");
}

TEST(Csv, QuotesWhatNeedsIt) {
  Report report;
  report.cases.push_back(testing::passed_case("naive", MathClass::fp32, 1));
  report.cases.front().detail = "a \"quoted\", word\r\nand a line";
  report.cases.front().note = "plain; text";
  auto cells = first_case(report);
  EXPECT_EQ(cells["detail"], report.cases.front().detail);
  EXPECT_EQ(cells["note"], "plain; text");
}

TEST(Csv, IsUtf8WhateverANameHolds) {
  Report report;
  report.cases.push_back(testing::passed_case("m\xFF\xFEine, \xC3\xA9", MathClass::fp32, 1));
  EXPECT_EQ(first_case(report)["variant"], "m\uFFFD\uFFFDine, \u00E9");
}

}  // namespace
}  // namespace convmish
