#include "core/data_sheet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace convmish {
namespace {

struct Sheet {
  const char* name;
  double dram_gbytes, ffma_tflops, tf32_tflops, fp16_tflops;  // 0: the device has none
};

class DataSheet : public testing::TestWithParam<Sheet> {};

TEST_P(DataSheet, IsFoundByTheDriversName) {
  const Sheet& sheet = GetParam();
  const Ceilings found = data_sheet_of(sheet.name);
  EXPECT_EQ(found.dram_bytes.value_or(0), sheet.dram_gbytes * 1e9);
  EXPECT_EQ(found.ffma_flops.value_or(0), sheet.ffma_tflops * 1e12);
  EXPECT_EQ(found.tensor_tf32_flops.value_or(0), sheet.tf32_tflops * 1e12);
  EXPECT_EQ(found.tensor_fp16_flops.value_or(0), sheet.fp16_tflops * 1e12);
}

// The tensor rates are dense: a sheet's figure with sparsity is twice as much.
INSTANTIATE_TEST_SUITE_P(
    Devices, DataSheet,
    testing::Values(
        Sheet{"Tesla V100-SXM2-16GB", 900, 15.7, 0, 125}, Sheet{"Tesla V100-SXM2-32GB", 900, 15.7, 0, 125},
        Sheet{"Tesla V100-PCIE-16GB", 900, 14, 0, 112}, Sheet{"Tesla V100-PCIE-32GB", 900, 14, 0, 112},
        Sheet{"NVIDIA A100-SXM4-40GB", 1555, 19.5, 156, 312}, Sheet{"A100-SXM4-40GB", 1555, 19.5, 156, 312},
        Sheet{"NVIDIA A100-PCIE-40GB", 1555, 19.5, 156, 312},
        Sheet{"NVIDIA A100-SXM4-80GB", 2039, 19.5, 156, 312},
        Sheet{"NVIDIA A100 80GB PCIe", 1935, 19.5, 156, 312},
        Sheet{"NVIDIA H100 80GB HBM3", 3350, 67, 494.5, 989.5},
        Sheet{"NVIDIA H100 PCIe", 2000, 51, 378, 756.5}, Sheet{"NVIDIA H200", 4800, 67, 494.5, 989.5},
        Sheet{"NVIDIA B200", 8000, 80, 1100, 2250}, Sheet{"NVIDIA L4", 300, 30.3, 60, 121},
        Sheet{"NVIDIA L40S", 864, 91.6, 183, 366.5}, Sheet{"NVIDIA GeForce RTX 3090", 936, 35.6, 35.6, 71},
        Sheet{"NVIDIA GeForce RTX 4090", 1008, 82.6, 82.6, 165.2},
        Sheet{"NVIDIA GeForce RTX 5090", 1792, 104.8, 104.8, 209.5}),
    [](const auto& instance) {
      std::string name = instance.param.name;
      std::ranges::replace_if(
          name, [](unsigned char c) { return !std::isalnum(c); }, '_');
      return name;
    });

TEST(DataSheetOf, OtherPartsAreNotTaken) {
  for (const char* name : {"",
                           "NVIDIA ",
                           "H100",
                           "NVIDIA H100",
                           "NVIDIA H100 NVL",
                           "NVIDIA H100 80GB HBM3e",
                           "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                           "NVIDIA H200 NVL",
                           "NVIDIA GH200 480GB",
                           "NVIDIA L40",
                           "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
                           "NVIDIA B300",
                           "NVIDIA GB200",
                           "Tesla V100S-PCIE-32GB",
                           "NVIDIA GeForce RTX 3090 Ti",
                           "NVIDIA GeForce RTX 4090 Laptop GPU",
                           "NVIDIA GeForce RTX 4090 D",
                           "nvidia h200",
                           "NVIDIA NVIDIA H200",
                           "AMD EPYC 9654"}) {
    const Ceilings found = data_sheet_of(name);
    for (const auto rate : kCeilingRates) EXPECT_FALSE(found.*rate) << name;
  }
}

}  // namespace
}  // namespace convmish
