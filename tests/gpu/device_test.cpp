// The CUDA device against the CPU device: the same inputs, the same reference, the same verdicts.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "check/tensor_view.hpp"
#include "core/data_sheet.hpp"
#include "report/ceilings_table.hpp"
#include "tests/gpu/gpu_fixture.hpp"

namespace convmish {
namespace {

constexpr Shape kShape{.n = 3, .c = 21, .h = 19, .w = 37, .k = 18};

class DeviceTest : public GpuTest {
 protected:
  std::vector<float> download(Buffer& buffer) {
    std::vector<float> host(buffer.bytes() / sizeof(float));
    device().download(host.data(), buffer.data(), buffer.bytes());
    return host;
  }
};

struct Tensors {
  Tensors(Device& device, const FillSpec& spec, Layout layout) {
    for (const Tensor tensor : {Tensor::x, Tensor::filter, Tensor::bias}) {
      buffers.push_back(
          device.allocate(4 * static_cast<std::size_t>(tensor_dims(spec.shape, tensor).count())));
      device.draw_tensor(spec, tensor, layout, buffers.back()->floats());
    }
    buffers.push_back(device.allocate(4 * static_cast<std::size_t>(spec.shape.y_elements())));
  }

  Comparison comparison(const FillSpec& spec, Layout layout, Algorithm algorithm = Algorithm::direct) {
    return {.shape = spec.shape,
            .x = buffers[0]->floats(),
            .filter = buffers[1]->floats(),
            .bias = buffers[2]->floats(),
            .y = y().floats(),
            .layout = layout,
            .rule = acceptance_rule(MathClass::fp32, spec.shape, false),
            .algorithm = algorithm,
            .fingerprint = true};
  }
  ErrorSummary compare(Device& device, const FillSpec& spec, Layout layout, std::span<ReferencePoint> samples,
                       Algorithm algorithm = Algorithm::direct) {
    return device.compare(comparison(spec, layout, algorithm), samples);
  }
  Buffer& y() { return *buffers[3]; }

  std::vector<std::unique_ptr<Buffer>> buffers;
};

TEST_F(DeviceTest, DrawsTheBitsThatTheCpuDraws) {
  const auto cpu = make_cpu_device();
  for (const auto& fill : Words<Fill>::list)
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      const FillSpec spec = fill_spec(fill.value, 11, kShape);
      Tensors here(*cpu, spec, layout), there(device(), spec, layout);
      for (int tensor = 0; tensor < 3; ++tensor) {
        const auto found = download(*there.buffers[static_cast<std::size_t>(tensor)]);
        EXPECT_EQ(std::memcmp(found.data(), here.buffers[static_cast<std::size_t>(tensor)]->data(),
                              found.size() * sizeof(float)),
                  0)
            << fill.text << " " << to_string(layout) << " tensor " << tensor;
      }
    }
}

TEST_F(DeviceTest, ComputesTheReferenceAndTheVerdictOfTheCpu) {
  const auto cpu = make_cpu_device();
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::transform}) {
      const FillSpec spec = fill_spec(Fill::normal, 5, kShape);
      Tensors here(*cpu, spec, layout), there(device(), spec, layout);
      // An output that is right in places only: pseudo-random floats near the reference's range.
      const FillSpec noise =
          fill_spec(Fill::kernelbench, 1, {.n = 1, .c = 1, .h = 1, .w = kShape.y_elements()});
      cpu->draw_tensor(noise, Tensor::x, Layout::nchw, here.y().floats());
      device().upload(there.y().data(), here.y().data(), here.y().bytes());

      std::vector<ReferencePoint> cpu_samples(500), gpu_samples(500);
      for (std::size_t i = 0; i < cpu_samples.size(); ++i)
        cpu_samples[i].index = gpu_samples[i].index =
            static_cast<std::int64_t>(i) * (kShape.y_elements() - 1) / static_cast<std::int64_t>(499);
      const ErrorSummary expected = here.compare(*cpu, spec, layout, cpu_samples, algorithm);
      const ErrorSummary found = there.compare(device(), spec, layout, gpu_samples, algorithm);
      for (std::size_t i = 0; i < cpu_samples.size(); ++i) {
        EXPECT_EQ(gpu_samples[i].y, cpu_samples[i].y);
        EXPECT_NEAR(gpu_samples[i].z, cpu_samples[i].z, 1e-14 * cpu_samples[i].s);
        EXPECT_NEAR(gpu_samples[i].s, cpu_samples[i].s, 1e-14 * cpu_samples[i].s);
      }
      EXPECT_EQ(found.compared, expected.compared);
      EXPECT_EQ(found.wrong, expected.wrong);
      EXPECT_GT(found.wrong, 0);
      EXPECT_NEAR(found.worst_ratio, expected.worst_ratio, 1e-9 * expected.worst_ratio);
      EXPECT_NEAR(found.max_abs, expected.max_abs, 1e-9);
      EXPECT_NEAR(*found.fingerprint, *expected.fingerprint, 1e-9 * *expected.fingerprint);
      EXPECT_NEAR(found.relative_frobenius, expected.relative_frobenius, 1e-9);
      ASSERT_TRUE(found.worst_at && found.first_wrong_at);
      EXPECT_EQ(found.worst_at->p, expected.worst_at->p);
      EXPECT_EQ(found.worst_at->q, expected.worst_at->q);
      EXPECT_EQ(found.first_wrong_at->q, expected.first_wrong_at->q);
    }
}

TEST_F(DeviceTest, CountsWrongOutputsAsTheCpuDoes) {
  const auto cpu = make_cpu_device();
  constexpr std::uint32_t kPoison = 0x7fc0dead;
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::transform}) {
      const FillSpec spec = fill_spec(Fill::normal, 5, kShape);
      Tensors here(*cpu, spec, layout), there(device(), spec, layout);
      const FillSpec noise =
          fill_spec(Fill::kernelbench, 1, {.n = 1, .c = 1, .h = 1, .w = kShape.y_elements()});
      cpu->draw_tensor(noise, Tensor::x, Layout::nchw, here.y().floats());
      cpu->fill_words(here.y().floats() + 1000, 4 * 2000,
                      kPoison);  // across rows, channels and an image's end
      device().upload(there.y().data(), here.y().data(), here.y().bytes());
      const WrongCounts expected = cpu->count_wrong(here.comparison(spec, layout, algorithm), kPoison);
      const WrongCounts found = device().count_wrong(there.comparison(spec, layout, algorithm), kPoison);
      EXPECT_EQ(found.poisoned, 2000);
      EXPECT_EQ(found.n, expected.n);
      EXPECT_EQ(found.k, expected.k);
      EXPECT_EQ(found.p, expected.p);
      EXPECT_EQ(found.q, expected.q);
    }
}

TEST_F(DeviceTest, RoundsMultiplicandsAsTheCpuDoes) {
  const auto cpu = make_cpu_device();
  const FillSpec spec = fill_spec(Fill::normal, 5, kShape);
  Tensors here(*cpu, spec, Layout::nchw), there(device(), spec, Layout::nchw);
  for (Tensors* tensors : {&here, &there}) {
    Device& of = tensors == &here ? *cpu : device();
    of.fill_words(tensors->y().data(), tensors->y().bytes(), 0);
  }
  for (const Multiplicands to : {Multiplicands::tf32, Multiplicands::tf32_even, Multiplicands::tf32_truncated,
                                 Multiplicands::bf16, Multiplicands::fp16}) {
    std::vector<ReferencePoint> expected(200), found(200);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i].index = found[i].index = static_cast<std::int64_t>(i) * 97;
    Comparison on_cpu = here.comparison(spec, Layout::nchw), on_gpu = there.comparison(spec, Layout::nchw);
    on_cpu.multiplicands = on_gpu.multiplicands = to;
    cpu->compare(on_cpu, expected);
    device().compare(on_gpu, found);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i].z, expected[i].z, 1e-14 * expected[i].s) << static_cast<int>(to);
  }
}

TEST_F(DeviceTest, ComparesInChunksWithoutLosingAny) {
  // Three chunks of 2^24 outputs; all of y is poison, so that every output counts.
  const FillSpec spec = fill_spec(Fill::kernelbench, 5, {.n = 5, .c = 1, .h = 514, .w = 514, .k = 32});
  Tensors tensors(device(), spec, Layout::nchw);
  device().fill_words(tensors.y().data(), tensors.y().bytes(), 0x7fc00000);
  const ErrorSummary error = tensors.compare(device(), spec, Layout::nchw, {});
  EXPECT_EQ(error.compared, spec.shape.y_elements());
  EXPECT_EQ(error.wrong, spec.shape.y_elements());
  EXPECT_EQ(error.nan_outputs, spec.shape.y_elements());

  const WrongCounts counts = device().count_wrong(tensors.comparison(spec, Layout::nchw), 0x7fc00000);
  EXPECT_EQ(counts.poisoned, spec.shape.y_elements());
  const std::int64_t row = spec.shape.y_elements() / spec.shape.p();
  EXPECT_EQ(counts.p, std::vector<std::int64_t>(static_cast<std::size_t>(spec.shape.p()), row));
}

TEST_F(DeviceTest, SeesAWriteOutsideABuffer) {
  auto buffer = device().allocate(36);
  EXPECT_EQ(buffer->damage(), Buffer::Damage::none);
  device().fill_words(buffer->floats() + 9, 4, 0);
  EXPECT_EQ(buffer->damage(), Buffer::Damage::after);
  auto other = device().allocate(36);
  device().fill_words(other->floats() - 1, 4, 0);
  EXPECT_EQ(other->damage(), Buffer::Damage::before);
}

TEST_F(DeviceTest, RefusesMemoryThatIsNotThereWithBothFigures) {
  try {
    device().allocate(std::size_t{1} << 50);
    FAIL() << "a petabyte was given";
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.needed, std::int64_t{1} << 50);
    EXPECT_GT(error.available, 0);
  }
}

TEST_F(DeviceTest, ReferenceOfTheHeadlineShapeTakesAtMostAsLongAsPromised) {
  const FillSpec spec = fill_spec(Fill::kernelbench, 5, {.n = 64, .c = 64, .h = 256, .w = 256, .k = 128});
  if (device().free_bytes() < 8 * spec.shape.y_elements()) GTEST_SKIP() << "too little memory";
  if (device().info().compute_capability() != 90) GTEST_SKIP() << "promised for an H100 or H200 only";
  Tensors tensors(device(), spec, Layout::nchw);
  device().synchronize();
  const std::int64_t before = device().free_bytes();
  const auto start = std::chrono::steady_clock::now();
  tensors.compare(device(), spec, Layout::nchw, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("float64 reference and comparison: %.3f s\n", seconds);
  EXPECT_LT(seconds, 1.5);
  EXPECT_LT(std::llabs(before - device().free_bytes()), std::int64_t{1} << 30);
}

TEST_F(DeviceTest, CeilingsAreThoseOfAGpu) {
  const MeasuredCeilings measured = device().measure_ceilings();
  const Ceilings& rates = measured.rates;
  ASSERT_TRUE(rates.dram_bytes && rates.ffma_flops && rates.special_functions) << measured.gap;
  std::fputs(ceilings_table({.measured = measured, .measured_at = {}, .data_sheet = {}}, {}).c_str(), stdout);
  // On every NVIDIA GPU since Volta the FFMA rate is 2 x 2 x 4 ... 2 x 8 times the special functions'.
  EXPECT_GT(*rates.ffma_flops / *rates.special_functions, 4);
  EXPECT_LT(*rates.ffma_flops / *rates.special_functions, 20);
  if (device().info().compute_capability() < 80 || !measured.gap.empty()) return;
  ASSERT_TRUE(rates.tensor_tf32_flops && rates.tensor_fp16_flops);
  EXPECT_GT(*rates.tensor_fp16_flops, *rates.tensor_tf32_flops);
  EXPECT_GT(*rates.tensor_tf32_flops, 0.7 * *rates.ffma_flops);  // equal on paper on GeForce parts
}

TEST_F(DeviceTest, CeilingsStayWithinTheDataSheetsMargins) {
  const Ceilings rates = device().measure_ceilings().rates, sheet = data_sheet_of(device().info().name);
  for (const auto rate : kCeilingRates)
    if (rates.*rate && sheet.*rate) {
      EXPECT_LT(*(rates.*rate), 1.3 * *(sheet.*rate));
      EXPECT_GT(*(rates.*rate), 0.5 * *(sheet.*rate)) << "not dense, or of another part";
    }
}

}  // namespace
}  // namespace convmish
