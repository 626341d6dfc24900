#include "report/resource_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace convmish {
namespace {

using testing::HasSubstr;
using testing::Not;

const Variant& tensor_variant() {
  static const Variant variant{.name = "some_tiles",
                               .summary = "tiles of some size",
                               .math = MathClass::tf32,
                               .pipe = Pipe::tensor_fp16,
                               .products = 3,
                               .in_place = true,
                               .min_compute_capability = 90,
                               .configurations = {"8x32x128", "16x8x64"}};
  return variant;
}

/// All that a card can hold; the figures are made up.
ResourceCard full_card() {
  return {
      .variant = &tensor_variant(),
      .shape = {.n = 64, .c = 64, .h = 256, .w = 256, .k = 128},
      .device = {.kind = DeviceKind::cuda,
                 .name = "Some GPU",
                 .multiprocessors = 132,
                 .max_threads_per_multiprocessor = 2048},
      .plan = PlanFacts{.geometry = LaunchGeometry{.grid = {264, 1, 1},
                                                   .block = {640, 1, 1},
                                                   .cluster = 2,
                                                   .shared_bytes = 230144,
                                                   .registers = 96,
                                                   .local_bytes = 8,
                                                   .blocks_per_multiprocessor = 1},
                        .workspace_bytes = 1024,
                        .plan_bytes = 147456,
                        .note = "row ring"},
      .demands = {{"dram", 3.188e9, 4e12}, {"tensor_fp16", 6.088e11, 7e14}, {"special_function", 1.5e9, {}}},
      .shared = SharedUse{
          .grid = {2, 4, 1},
          .block = {1, 2, 0},
          .threads = 640,
          .sites = {{"x", AccessKind::load, 8, 10, 40, 20, 2}, {"taps", AccessKind::store, 4, 5, 5, 5, 1}}}};
}

std::string text_of(const ResourceCard& card, int width = TerminalStyle::kUnlimited) {
  return resource_card_text(card, "asked for", "auto: the first CUDA GPU", {.width = width});
}

TEST(ResourceCardText, TellsAllThatIsKnown) {
  const std::string text = text_of(full_card());
  for (const char* const line :
       {"some_tiles:tf32  tiles of some size\n",
        "  for cuda  layout nchw  pipe tensor_fp16  3 products a multiply-add  algorithm direct  activation "
        "in "
        "place  from compute capability 9.0 on\n",
        "device Some GPU (auto: the first CUDA GPU)\n",
        "shape  n64c64h256w256k128 (asked for)\n",
        "  grid           264x1x1: 264 blocks\n",
        "  block          640x1x1: 640 threads, 20 warps\n",
        "  cluster        2 blocks\n",
        "  shared memory  230144 bytes a block\n",
        "  registers      96 a thread\n",
        "  local memory   8 bytes a thread: spills and stack\n",
        "  occupancy      1 blocks a multiprocessor: 20 warps, 31% of what it can hold\n",
        "  waves          2.00 over 132 multiprocessors\n",
        "  memory         1024 bytes of workspace, 147456 of the plan's\n",
        "  plan           row ring\n",
        "  compiled in    8x32x128, 16x8x64: for --configuration\n",
        "  arithmetic     608.8 GFLOP, as a direct convolution\n",
        "  traffic        3.188 GB at least, every tensor once\n",
        "  intensity      191 FLOP a byte\n",
        "dram                 3.188 GB       4 TB/s    0.7970\n",
        "tensor_fp16       608.8 GFLOP  700 TFLOP/s    0.8697\n",
        "special_function      1.5 Gop            -         -\n",
        "tensor_fp16 binds: a floor of 0.8697 ms; a rate that was measured can be beaten\n",
        "all 20 warps of block (1, 2, 0) of 2x4x1, one image\n",
        "load x          8            10          40     20   2-way      50.0%\n",
        "store taps      4             5           5      5    none      0.00%\n",
        "20 of 45 wavefronts, 44.4%, are bank conflicts\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("not known")));
}

TEST(ResourceCardText, TellsWhatIsNotKnownAndWhy) {
  ResourceCard card = full_card();
  card.plan = NotKnown{"runs on cuda; this device is cpu (asked for)"};
  for (Demand& demand : card.demands) demand.rate.reset();
  card.shared = NotKnown{"nobody looked"};
  const std::string text = text_of(card);
  EXPECT_THAT(text, HasSubstr("  geometry       not known: runs on cuda; this device is cpu (asked for)\n"));
  EXPECT_THAT(text, HasSubstr("rates and floors not known: runs on cuda; this device is cpu (asked for)\n"));
  EXPECT_THAT(text, HasSubstr("Shared memory: accesses not known: nobody looked\n"));
  EXPECT_THAT(text, Not(HasSubstr("binds")));
}

TEST(ResourceCardText, TellsWhatOnlyAGpuKnows) {
  ResourceCard card = full_card();
  LaunchGeometry& geometry = *std::get<PlanFacts>(card.plan).geometry;
  geometry.registers.reset(), geometry.local_bytes.reset(), geometry.blocks_per_multiprocessor.reset();
  const std::string text = text_of(card);
  for (const char* const name : {"registers    ", "local memory ", "occupancy    ", "waves        "})
    EXPECT_THAT(text, HasSubstr(std::string("  ") + name + "  not known: "));

  std::get<PlanFacts>(card.plan).geometry.reset();
  EXPECT_THAT(text_of(card), HasSubstr("  geometry       not known: "));
}

TEST(ResourceCardText, TellsAKernelWithoutSharedMemory) {
  ResourceCard card = full_card();
  card.shared = SharedUse{};
  EXPECT_THAT(text_of(card), HasSubstr("\nShared memory: not used\n"));
}

TEST(ResourceCardText, KeepsToTheWidth) {
  std::istringstream lines(text_of(full_card(), 60));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
}

}  // namespace
}  // namespace convmish
