#include "cli/progress.hpp"

#include <gtest/gtest.h>

namespace convmish {
namespace {

TEST(TimeLeft, IsNotKnownBeforeTheFirstCheckHasEnded) {
  TimeLeft left(/*shapes=*/1, /*variants=*/2, /*checks=*/3, /*timing_s=*/0);
  left.begin_shape(0);
  left.begin_check(0, 0);
  EXPECT_FALSE(left.at(5));
  left.begin_check(0, 1);
  EXPECT_TRUE(left.at(5));
}

TEST(TimeLeft, TakesTheChecksAheadToLastAsLongAsThoseBehind) {
  TimeLeft left(1, 2, 3, 0);
  left.begin_shape(100);
  left.begin_check(1, 0);  // two of six
  EXPECT_DOUBLE_EQ(*left.at(110), 20);
}

TEST(TimeLeft, TakesTimingToLastAsLongAsItMay) {
  TimeLeft left(1, 2, 1, 8);
  left.begin_shape(0);
  left.begin_check(0, 1);
  EXPECT_DOUBLE_EQ(*left.at(3), 3 + 8);
  left.begin_timing(6);
  left.begin_timing(7);  // each timed launch tells it
  EXPECT_DOUBLE_EQ(*left.at(10), 4);
  EXPECT_DOUBLE_EQ(*left.at(20), 0);  // longer than it may
}

TEST(TimeLeft, TakesFurtherShapesToLastAsLongAsTheFinishedOnes) {
  TimeLeft left(4, 1, 2, 0);
  left.begin_shape(0);
  left.begin_check(0, 0);
  left.end_shape(10);
  left.begin_shape(10);
  EXPECT_DOUBLE_EQ(*left.at(13), 7 + 2 * 10);
  left.begin_check(1, 0);
  EXPECT_DOUBLE_EQ(*left.at(14), 4 + 2 * 10);
}

TEST(TimeLeft, TakesTheToleranceForOneMoreCheckWhateverTheFills) {
  RunOptions run{.shapes = {Shape{}}, .fills = {Fill::normal}, .time = false};
  run.tolerances = {{.kind = Tolerance::Kind::kernelbench}};
  TimeLeft left = time_left_of(run, /*variants=*/2);
  left.begin_shape(0);
  begin_step(left, run, 1, {Step::Kind::check, Fill::normal}, 10);
  EXPECT_DOUBLE_EQ(*left.at(10), 30);
  begin_step(left, run, 1, {Step::Kind::check_tolerance}, 30);
  EXPECT_DOUBLE_EQ(*left.at(30), 10);
}

TEST(TimeLeft, IsNeverLessThanNothing) {
  TimeLeft left(1, 2, 1, 0);
  left.begin_shape(0);
  left.begin_check(5, 1);  // more than there are
  EXPECT_DOUBLE_EQ(*left.at(10), 0);
}

TEST(TimeLeft, OfAFixedCountOfSamplesIsNotKnownBeforeAShapeHasEnded) {
  RunOptions run{.shapes = {Shape{}, Shape{}}, .fills = {Fill::normal}};
  run.timing.samples = 100;
  TimeLeft left = time_left_of(run, 2);
  left.begin_shape(0);
  begin_step(left, run, 1, {Step::Kind::check, Fill::normal}, 1);
  EXPECT_FALSE(left.at(1));
  begin_step(left, run, 0, {Step::Kind::time}, 2);
  EXPECT_FALSE(left.at(3));
  left.end_shape(10);
  left.begin_shape(10);
  begin_step(left, run, 0, {Step::Kind::time}, 12);
  EXPECT_DOUBLE_EQ(*left.at(14), 6);
}

TEST(DurationText, HasTwoPlacesAtMost) {
  EXPECT_EQ(duration_text(0.4), "0 s");
  EXPECT_EQ(duration_text(59.6), "1:00 min");
  EXPECT_EQ(duration_text(125), "2:05 min");
  EXPECT_EQ(duration_text(4200), "1:10 h");
}

}  // namespace
}  // namespace convmish
