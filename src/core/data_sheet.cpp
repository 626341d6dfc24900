#include "core/data_sheet.hpp"

#include <algorithm>

namespace convmish {
namespace {

/// A tensor rate that a sheet tells with 2:4 sparsity, which doubles it.
constexpr double dense(double with_sparsity) {
  return with_sparsity / 2;
}

constexpr std::optional<double> kNone = std::nullopt;

struct Row {
  std::string_view device;  // as the driver tells it, without "NVIDIA " in front, which older ones leave out
  double dram_gbytes, ffma_tflops;
  std::optional<double> tensor_tf32_tflops, tensor_fp16_tflops;
};

// Each group under its source, NVIDIA's own. GeForce parts halve the FP16 rate where sums are fp32: that rate
// is theirs here.
constexpr Row kRows[] = {
    // "NVIDIA V100" data sheet: images.nvidia.com/content/technologies/volta/pdf/
    // volta-v100-datasheet-update-us-1165301-r5.pdf. No TF32 before Ampere.
    {"Tesla V100-SXM2-16GB", 900, 15.7, kNone, 125},
    {"Tesla V100-SXM2-32GB", 900, 15.7, kNone, 125},
    {"Tesla V100-PCIE-16GB", 900, 14, kNone, 112},
    {"Tesla V100-PCIE-32GB", 900, 14, kNone, 112},
    // "NVIDIA A100" data sheet: nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/
    // nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf; the 40 GB parts' memory: images.nvidia.com/aem-dam/
    // en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf
    {"A100-SXM4-40GB", 1555, 19.5, 156, 312},
    {"A100-PCIE-40GB", 1555, 19.5, 156, 312},
    {"A100-SXM4-80GB", 2039, 19.5, 156, 312},
    {"A100 80GB PCIe", 1935, 19.5, 156, 312},
    // "NVIDIA H100" data sheet: resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet
    {"H100 80GB HBM3", 3350, 67, dense(989), dense(1979)},
    {"H100 PCIe", 2000, 51, dense(756), dense(1513)},
    // nvidia.com/en-us/data-center/h200, column "H200 SXM"
    {"H200", 4800, 67, dense(989), dense(1979)},
    // "NVIDIA Blackwell Architecture" technical brief, HGX B200:
    // resources.nvidia.com/en-us-blackwell-architecture
    {"B200", 8000, 80, dense(2200), dense(4500)},
    // nvidia.com/en-us/data-center/l4
    {"L4", 300, 30.3, dense(120), dense(242)},
    // nvidia.com/en-us/data-center/l40s
    {"L40S", 864, 91.6, dense(366), dense(733)},
    // "NVIDIA Ampere GA102 GPU Architecture" white paper, appendix A:
    // nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf
    {"GeForce RTX 3090", 936, 35.6, 35.6, 71},
    // "NVIDIA Ada GPU Architecture" white paper, appendix A:
    // images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf
    {"GeForce RTX 4090", 1008, 82.6, 82.6, 165.2},
    // "NVIDIA RTX Blackwell GPU Architecture" white paper, appendix A:
    // images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf
    {"GeForce RTX 5090", 1792, 104.8, 104.8, 209.5},
};

std::optional<double> tera(std::optional<double> rate) {
  return rate ? std::optional(*rate * 1e12) : std::nullopt;
}

}  // namespace

Ceilings data_sheet_of(std::string_view device_name) {
  constexpr std::string_view kVendor = "NVIDIA ";
  if (device_name.starts_with(kVendor)) device_name.remove_prefix(kVendor.size());
  const auto row = std::ranges::find(kRows, device_name, &Row::device);
  if (row == std::end(kRows)) return {};
  return {.dram_bytes = row->dram_gbytes * 1e9,
          .ffma_flops = tera(row->ffma_tflops),
          .tensor_tf32_flops = tera(row->tensor_tf32_tflops),
          .tensor_fp16_flops = tera(row->tensor_fp16_tflops)};
}

}  // namespace convmish
