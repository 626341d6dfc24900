#include "report/ceilings_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_reports.hpp"

namespace convmish {
namespace {

TEST(CeilingsTable, SetsWhatWasMeasuredBesideTheDataSheet) {
  EXPECT_EQ(ceilings_table(*testing::gpu_report().ceilings, {.width = 60}),
            "ceiling               measured     data sheet\n"
            "---------------------------------------------\n"
            "dram                 4.22 TB/s       4.8 TB/s\n"
            "ffma              60.5 TFLOP/s     67 TFLOP/s\n"
            "tensor_tf32                  -  494.5 TFLOP/s\n"
            "tensor_fp16                  -  989.5 TFLOP/s\n"
            "special_function     4.2 Top/s              -\n"
            "measured at 2026-02-01T04:05:06Z\n"
            "tensor rates not measured: cuBLAS cannot be loaded; the data\n"
            "  sheet's figure stands in\n");
}

TEST(CeilingsTable, LetsNoDataSheetStandInThatHasNothingToAdd) {
  DeviceCeilings ceilings = *testing::gpu_report().ceilings;
  ceilings.data_sheet.tensor_tf32_flops = ceilings.data_sheet.tensor_fp16_flops = std::nullopt;
  EXPECT_THAT(ceilings_table(ceilings, {}), ::testing::EndsWith("cuBLAS cannot be loaded\n"));
}

TEST(CeilingsTable, LeavesOutWhatIsNotKnown) {
  const std::string table =
      ceilings_table({.measured = {.rates = {.dram_bytes = 3e11}}, .measured_at = {}, .data_sheet = {}}, {});
  EXPECT_THAT(table, ::testing::HasSubstr("dram"));
  EXPECT_THAT(table, ::testing::Not(::testing::HasSubstr("ffma")));
  EXPECT_THAT(table, ::testing::Not(::testing::HasSubstr("measured at")));
  EXPECT_EQ(ceilings_table({}, {}), "");
}

}  // namespace
}  // namespace convmish
