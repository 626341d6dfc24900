// Every CUDA variant on a real GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/plan.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"
#include "run/runner.hpp"
#include "run/verify.hpp"
#include "tests/gpu/gpu_fixture.hpp"
#include "variants/common/activation_pass.hpp"

namespace convmish {
namespace {

class VariantsTest : public GpuTest {
 protected:
  std::vector<CaseResult> check(const Shape& shape, std::vector<Fill> fills,
                                const std::vector<std::string>& patterns = {}) {
    RunnerOptions options;
    options.run.fills = std::move(fills);
    options.run.time = false;
    const auto variants = select_variants(Registry::instance(), DeviceKind::cuda, patterns);
    return run_shape(device(), variants, shape, options);
  }
};

TEST_F(VariantsTest, PassEveryEdgeShapeOnEveryDefaultFill) {
  for (const Shape& shape : load_config("configs/edges.json").shapes)
    for (const CaseResult& result : check(shape, default_fills()))
      EXPECT_TRUE(result.verdict == Verdict::passed || result.verdict == Verdict::skipped)
          << result.variant << " " << to_string(result.math_class) << " " << to_string(shape) << ": "
          << result.detail;
}

// What the edge shapes, small as they are, do not reach: rings of many rows, read by tensor copies one by one
// or in pairs, or by none; odd rows, more than one cluster's channels; rings of pixels, of which a tile reads
// two to four chunks; packed pixels with a filter that is fetched again for each tile, with two consumers a
// tile, and with a pitch of whole rows.
TEST_F(VariantsTest, TensorCoreKernelsPassShapesOfEveryForm) {
  for (const char* text :
       {"n1c60h12w508k130",  "n2c17h9w115k200",  "n1c64h7w255k257",  "n3c33h6w130k72",    "n2c64h9w256k128",
        "n2c64h11w226k128",  "n2c64h20w258k128", "n2c33h9w642k72",   "n2c200h12w14k130",  "n3c256h9w9k70",
        "n5c70h10w10k65",    "n512c2h4w130k66",  "n1c40h5w3000k70",  "n32c512h9w9k512",   "n4c3h3w700k129",
        "n32c256h16w16k256", "n20c64h50w48k128", "n4c33h300w126k72", "n2c40h130w190k200", "n700c48h12w12k66",
        "n128c64h9w64k128",  "n120c64h30w30k64", "n16c40h60w130k50"})
    for (const CaseResult& result : check(parse_shape(text), default_fills(), {"hopper_*", "mma_*"}))
      EXPECT_TRUE(result.verdict == Verdict::passed || result.verdict == Verdict::skipped)
          << result.variant << " " << text << ": " << result.detail;
}

// Each by its rings or its own kernel, and by the kernel for other shapes.
TEST_F(VariantsTest, TellWhatTheFastWayCouldNotServe) {
  for (const char* text : {"n2c64h20w256k128", "n20c64h30w64k72", "n40c64h31w32k72", "n2c96h20w30k72"}) {
    const Shape shape = parse_shape(text);
    for (const CaseResult& result :
         check(shape, {Fill::kernelbench, Fill::special}, {"hopper_fp16*", "mma_fp16*"})) {
      if (result.verdict == Verdict::skipped) continue;
      ASSERT_EQ(result.checks.size(), 2u) << result.variant << " " << text << ": " << result.detail;
      EXPECT_EQ(result.checks[0].recomputed_outputs, 0) << result.variant << " " << text;
      EXPECT_GT(result.checks[1].recomputed_outputs, 0) << result.variant << " " << text;
      EXPECT_LE(result.checks[1].recomputed_outputs, result.checks[1].error.compared)
          << result.variant << " " << text;
    }
  }
}

// Where nothing fits: each output once, and none of a tile's that are below its image or beside it.
TEST_F(VariantsTest, CountEachRecomputedOutputOnce) {
  for (const char* text : {"n2c64h20w256k128", "n3c64h9w330k128", "n40c64h31w32k72", "n120c64h30w30k64",
                           "n20c64h50w48k128", "n2c96h20w30k72"})
    for (const CaseResult& result : check(parse_shape(text), {Fill::wide}, {"hopper_fp16x1"})) {
      ASSERT_EQ(result.checks.size(), 1u) << text << ": " << result.detail;
      EXPECT_EQ(result.checks[0].recomputed_outputs, result.checks[0].error.compared) << text;
      EXPECT_EQ(result.verdict, Verdict::passed) << text << ": " << result.detail;
    }
}

// The shapes above are of every form only as long as each goes where it was meant to.
TEST_F(VariantsTest, HopperKernelsAreChosenByShape) {
  const auto note = [&](const char* text) {
    return check(parse_shape(text), {Fill::kernelbench}, {"hopper_fp16x1"}).front().note;
  };
  for (const char* text : {"n1c60h12w508k130", "n2c64h9w256k128", "n2c64h20w258k128", "n512c2h4w130k66"})
    EXPECT_NE(note(text).find("row ring"), std::string::npos) << text << ": " << note(text);
  for (const char* text :
       {"n20c64h30w64k72", "n20c64h50w48k128", "n4c33h300w126k72", "n2c40h130w190k200", "n700c48h12w12k66",
        "n128c64h9w64k128", "n40c64h31w32k72", "n120c64h30w30k64", "n16c40h60w130k50"})
    EXPECT_NE(note(text).find("pixel ring"), std::string::npos) << text << ": " << note(text);
  for (const char* text : {"n1c64h7w255k257", "n3c33h6w130k72", "n2c200h12w14k130", "n32c256h16w16k256"})
    EXPECT_NE(note(text).find("packed"), std::string::npos) << text << ": " << note(text);
}

/// The variant, told that a thread block has less shared memory than this GPU gives it, and that there are so
/// few multiprocessors that it computes several tiles of a small shape.
Variant on_smaller_device(const Variant& variant, std::int64_t bytes) {
  const auto smaller = [bytes](DeviceInfo device) {
    device.max_shared_bytes = std::min(device.max_shared_bytes, bytes);
    device.multiprocessors = std::min(device.multiprocessors, 2);
    return device;
  };
  Variant limited = variant;
  limited.preferred_configuration = [=](const Shape& shape, const DeviceInfo& device) {
    return variant.preferred_configuration(shape, smaller(device));
  };
  limited.prepare = [=](Problem problem) {
    const DeviceInfo device = smaller(*problem.device);
    problem.device = &device;
    return variant.prepare(problem);
  };
  return limited;
}

TEST_F(VariantsTest, EveryConfigurationOfTheMmaFamilyIsRightInLessSharedMemory) {
  int ran = 0;
  for (const std::int64_t bytes : {99 * 1024, 163 * 1024, 227 * 1024})  // sm_86, sm_80, sm_90
    for (const Variant* const variant : select_variants(Registry::instance(), DeviceKind::cuda, {"mma_*"})) {
      const Variant limited = on_smaller_device(*variant, bytes);
      for (const std::string& configuration : variant->configurations)
        for (const char* text :
             {"n1c3h3w40k5", "n2c33h19w36k70", "n3c80h34w18k129", "n1c200h37w67k64", "n8c16h34w37k70",
              "n8c33h34w37k70", "n3c16h38w220k70", "n4c40h18w132k70", "n8c20h34w37k70"}) {
          RunnerOptions options;
          options.run.fills = default_fills();
          options.run.time = false;
          options.configurations.asked = configuration;
          const CaseResult result = run_shape(device(), {&limited}, parse_shape(text), options).front();
          EXPECT_TRUE(result.verdict == Verdict::passed || result.reason == "unsupported")
              << bytes << " " << variant->name << " " << configuration << " " << text << ": "
              << result.detail;
          ran += result.verdict == Verdict::passed;
        }
      EXPECT_FALSE(
          limited.preferred_configuration({.n = 1, .c = 64, .h = 34, .w = 34, .k = 64}, device().info())
              .empty());
    }
  EXPECT_GT(ran, 0);
}

// Of the packed kernels: filter kept or fetched again for each tile, rows even or odd, eight columns of a
// tile in one row or each row's own. Of the ring of pixels: images of one tile or many, of which a cluster
// has all; input channels, and output channels, that fill no block; or no more than 64 of them.
TEST_F(VariantsTest, HopperKernelsAreRightWhereABlockComputesManyTiles) {
  const std::vector<const char*> packed{"n8c40h21w23k70", "n6c80h30w32k128", "n5c300h13w15k130",
                                        "n9c512h9w9k70"},
      pixel_ring{"n6c64h30w32k128", "n3c33h12w126k70", "n2c40h18w190k200", "n12c50h14w10k65",
                 "n5c64h9w64k200",  "n1c64h40w64k128", "n4c20h30w64k128",  "n3c64h31w32k128",
                 "n3c64h30w32k64",  "n2c40h30w126k50", "n5c64h9w64k33",    "n13c50h4w62k64",
                 "n1c64h60w190k64"};
  for (const Variant* const variant : select_variants(Registry::instance(), DeviceKind::cuda, {"hopper_*"})) {
    const Variant limited = on_smaller_device(*variant, 227 * 1024);
    for (const auto& [form, shapes] : {std::pair{"packed", packed}, std::pair{"pixel ring", pixel_ring}})
      for (const char* text : shapes) {
        RunnerOptions options;
        options.run.fills = default_fills();
        options.run.time = false;
        const CaseResult result = run_shape(device(), {&limited}, parse_shape(text), options).front();
        EXPECT_EQ(result.verdict, Verdict::passed) << variant->name << " " << text << ": " << result.detail;
        if (variant->name == "hopper_fp16x1") {
          EXPECT_NE(result.note.find(form), std::string::npos) << text << ": " << result.note;
        }
      }
  }
}

// Not right, which is what they show: the tanh of --use_fast_math is approximate, the graph's tails are
// wrong.
bool is_right(const std::string& ablation) {
  return !ablation.ends_with("_by_definition_fast_math") && ablation != "cudnn_graph_fused_by_definition" &&
         ablation != "cudnn_graph_convolution";
}

TEST_F(VariantsTest, AblationsPassAFewEdgeShapesOnEveryDefaultFill) {
  for (const char* text : {"n1c3h3w40k5", "n2c9h19w36k3", "n3c17h34w18k5"})
    for (const CaseResult& result : check(parse_shape(text), default_fills(), {"ablation"})) {
      if (!is_right(result.variant)) continue;
      EXPECT_TRUE(result.verdict == Verdict::passed || result.verdict == Verdict::skipped)
          << result.variant << " " << text << ": " << result.detail;
    }
}

TEST_F(VariantsTest, PassBeyondTwoToThe31Elements) {
  for (const Shape& shape : {Shape{.n = 280, .c = 8, .h = 256, .w = 256, .k = 128},  // y
                             Shape{.n = 4400, .c = 33, .h = 64, .w = 64, .k = 128},  // y, by a ring of pixels
                             Shape{.n = 600, .c = 64, .h = 256, .w = 256, .k = 2}}) {  // x
    if (device().free_bytes() < 4 * (shape.x_elements() + shape.y_elements()))
      GTEST_SKIP() << "too little memory";
    for (const CaseResult& result : check(shape, {Fill::kernelbench}))
      EXPECT_TRUE(result.verdict == Verdict::passed || result.verdict == Verdict::skipped)
          << result.variant << " " << to_string(result.math_class) << " " << to_string(shape) << ": "
          << result.detail;
  }
}

// [64,128,254,254]: a pass that moves as many bytes as a copy may take little longer than one.
TEST_F(VariantsTest, ActivationPassIsBoundByMemory) {
  const Shape shape{.n = 64, .c = 64, .h = 256, .w = 256, .k = 128};
  const auto bytes = static_cast<std::size_t>(4 * shape.y_elements());
  if (device().free_bytes() < 3 * static_cast<std::int64_t>(bytes)) GTEST_SKIP() << "too little memory";
  const auto in = device().allocate(bytes), out = device().allocate(bytes), bias = device().allocate(512);
  device().draw_tensor(fill_spec(Fill::normal, 1, {.n = 1, .c = 1, .h = 1, .w = shape.y_elements()}),
                       Tensor::x, Layout::nchw, in->floats());
  device().fill_words(bias->data(), bias->bytes(), 0);
  const auto pass_ms = [&](float* to, MishCount mish) {
    const auto sample = [&] {
      return device().time_ms(
          [&] {
            activate<DeviceKind::cuda>(
                {.in = in->floats(), .bias = bias->floats(), .out = to, .shape = shape, .mish = mish},
                device().stream());
          },
          Cache::hot);
    };
    for (int i = 0; i < 20; ++i) sample();  // the clocks rise
    std::vector<double> ms(21);
    for (double& one : ms) one = sample();
    std::nth_element(ms.begin(), ms.begin() + 10, ms.end());
    return ms[10];
  };
  const double copy_ms = 2e3 * static_cast<double>(bytes) / *device().measure_ceilings().rates.dram_bytes;
  const double out_of_place = pass_ms(out->floats(), MishCount::twice),
               in_place = pass_ms(in->floats(), MishCount::twice),
               once = pass_ms(out->floats(), MishCount::once);
  std::printf("bias + Mish + Mish: %.3f ms, in place %.3f ms; bias + Mish: %.3f ms; a copy: %.3f ms\n",
              out_of_place, in_place, once, copy_ms);
  for (const double ms : {out_of_place, in_place, once}) EXPECT_LT(ms, 1.1 * copy_ms);
}

}  // namespace
}  // namespace convmish
