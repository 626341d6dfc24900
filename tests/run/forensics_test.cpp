// Planted mistakes: each must be located and named, and what is not known must not be.
#include "run/forensics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "check/multiplicand.hpp"
#include "check/tensor_view.hpp"
#include "run/runner.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// More outputs than are sampled; 12 channels are one and a half blocks of 8.
constexpr Shape kShape{.n = 3, .c = 12, .h = 37, .w = 19, .k = 10};

/// The steps of the operation, each right unless a test replaces it.
struct Steps {
  std::int64_t channels = kShape.c;
  int image_step = 0;
  std::function<int(int)> filter_tap = [](int tap) { return tap; };  // negative: no product
  std::function<float(float)> multiplicand = [](float value) { return value; };
  std::function<float(float)> kept = [](float sum) { return sum; };  // after each product
  std::function<float(const float*, std::int64_t)> bias = [](const float* b, std::int64_t k) { return b[k]; };
  std::function<double(double)> activation = activation64;
  std::function<bool(const Chunk::At&)> makes_mistake = [](const Chunk::At&) { return true; };
  std::function<bool(const Chunk::At&)> writes = [](const Chunk::At&) { return true; };
};

float sum_of(const Steps& steps, const Problem& problem, const float* x, Layout layout, const Chunk::At& at) {
  const Shape& shape = problem.shape;
  const Strides xs = x_strides(layout, shape), ws = filter_strides(layout, shape);
  const std::int64_t n = std::clamp<std::int64_t>(at.n + steps.image_step, 0, shape.n - 1);
  float sum = 0;
  for (std::int64_t c = 0; c < steps.channels; ++c)
    for (int tap = 0; tap < kTaps; ++tap) {
      const int other = steps.filter_tap(tap);
      if (other < 0) continue;
      const float product = steps.multiplicand(x[xs.offset(n, c, at.p + tap / 3, at.q + tap % 3)]) *
                            steps.multiplicand(problem.filter[ws.offset(at.k, c, other / 3, other % 3)]);
      sum = steps.kept(sum + product);
    }
  return sum + steps.bias(problem.bias, at.k);
}

Variant planted(const Steps& mistaken, Layout layout = Layout::nchw) {
  Variant variant = host_variant("planted", [=](const Problem& problem, const LaunchArgs& args) {
    const Steps right;
    const Chunk whole{0, problem.shape.n, 0, problem.shape.k, 0, problem.shape.p(), problem.shape.q()};
    const Strides ys = y_strides(layout, problem.shape);
    for (std::int64_t i = 0; i < whole.outputs(); ++i) {
      const Chunk::At at = whole.at(i);
      if (!mistaken.writes(at)) continue;
      const Steps& steps = mistaken.makes_mistake(at) ? mistaken : right;
      const float z = sum_of(steps, problem, args.x, layout, at);
      args.y[ys.offset(at.n, at.k, at.p, at.q)] =
          static_cast<float>(steps.activation(static_cast<double>(z)));
    }
  });
  variant.layout = layout;
  return variant;
}

FillResult check(const Variant& variant, Fill fill = Fill::normal, const Shape& shape = kShape) {
  RunnerOptions options;
  options.run.fills = {fill};
  options.run.time = false;
  const auto device = make_cpu_device();
  return run_shape(*device, {&variant}, shape, options).front().checks.front();
}

Forensics forensics_of(const Steps& steps, Fill fill = Fill::normal, Layout layout = Layout::nchw) {
  const FillResult result = check(planted(steps, layout), fill);
  EXPECT_EQ(result.verdict, Verdict::failed);
  return result.forensics.value_or(Forensics{});
}

std::string text_of(const Steps& steps) {
  return describe(forensics_of(steps), kShape);
}

TEST(Forensics, AreForFailuresAlone) {
  const FillResult result = check(planted({}));
  EXPECT_EQ(result.verdict, Verdict::passed) << result.detail;
  EXPECT_FALSE(result.forensics);
}

// --- Which ----------------------------------------------------------------------------------------------

struct Planted {
  std::string name;  // as forensics call it
  Steps steps;
  Fill fill = Fill::normal;
};

std::vector<Planted> planted_mistakes() {
  const auto rounds_to = [](Multiplicands to) {
    return [to](float value) { return round_multiplicand(to, value); };
  };
  std::vector<Planted> all{
      {"bias left out", {.bias = [](const float*, std::int64_t) { return 0.0f; }}},
      {"bias added twice", {.bias = [](const float* b, std::int64_t k) { return 2 * b[k]; }}},
      {"bias of channel k-1",
       {.bias = [](const float* b, std::int64_t k) { return b[std::max<std::int64_t>(k - 1, 0)]; }}},
      {"one Mish only", {.activation = mish64}},
      {"three Mishes", {.activation = [](double z) { return mish64(activation64(z)); }}},
      {"no activation", {.activation = [](double z) { return z; }}},
      {"ReLU for one Mish", {.activation = [](double z) { return std::fmax(mish64(z), 0); }}},
      {"0 below z = -20",
       {.activation = [](double z) { return z < -20 ? 0 : activation64(z); }},
       Fill::tails},
      {"nothing but zeros", {.activation = [](double) { return 0.0; }}},
      {"r and s swapped", {.filter_tap = [](int tap) { return tap % 3 * 3 + tap / 3; }}},
      {"filter flipped", {.filter_tap = [](int tap) { return 8 - tap; }}},
      {"the last 4 of 12 input channels left out (c mod 8)", {.channels = 8}},
      {"the last input channel left out", {.channels = 11}},
      {"x of the previous image", {.image_step = -1}},
      {"x of the next image", {.image_step = 1}},
      {"TF32 multiplicands", {.multiplicand = rounds_to(Multiplicands::tf32)}},
      {"TF32 multiplicands", {.multiplicand = rounds_to(Multiplicands::tf32_even)}, Fill::kernelbench},
      {"TF32 multiplicands, truncated", {.multiplicand = rounds_to(Multiplicands::tf32_truncated)}},
      {"bf16 multiplicands", {.multiplicand = rounds_to(Multiplicands::bf16)}},
      {"fp16 multiplicands", {.multiplicand = rounds_to(Multiplicands::fp16)}},
      {"fp16 accumulation",
       {.multiplicand = rounds_to(Multiplicands::fp16), .kept = rounds_to(Multiplicands::fp16)}},
  };
  for (int tap = 0; tap < kTaps; ++tap)
    all.push_back({"tap r" + std::to_string(tap / 3) + " s" + std::to_string(tap % 3) + " left out",
                   {.filter_tap = [tap](int other) { return other == tap ? -1 : other; }}});
  return all;
}

TEST(Forensics, NameEveryPlantedMistakeAndNoOther) {
  for (const Planted& mistake : planted_mistakes()) {
    SCOPED_TRACE(mistake.name);
    const Forensics found = forensics_of(mistake.steps, mistake.fill);
    EXPECT_TRUE(found.matches_everywhere);
    // TF32 and fp16 have the same significand: they differ among the smallest values only.
    const bool rounding = mistake.name == "TF32 multiplicands" || mistake.name == "fp16 multiplicands";
    if (rounding)
      EXPECT_THAT(found.matches, Contains(mistake.name));
    else
      EXPECT_THAT(found.matches, ElementsAre(mistake.name));
  }
}

TEST(Forensics, NameAMistakeInAnyLayoutAndOnAnyFill) {
  const Steps no_bias{.bias = [](const float*, std::int64_t) { return 0.0f; }};
  for (const Fill fill : {Fill::kernelbench, Fill::positive, Fill::tails, Fill::exact, Fill::special})
    EXPECT_THAT(forensics_of(no_bias, fill, Layout::nhwc).matches, ElementsAre("bias left out"))
        << to_string(fill);
}

TEST(Forensics, NameAMistakeOfACoarserClassToo) {
  Steps steps{.multiplicand = [](float value) { return round_multiplicand(Multiplicands::tf32, value); },
              .activation = mish64};
  Variant variant = planted(steps);
  variant.math = MathClass::tf32;
  const FillResult result = check(variant);
  ASSERT_TRUE(result.forensics);
  EXPECT_THAT(result.forensics->matches, ElementsAre("one Mish only"));
}

TEST(Forensics, NameNoMistakeThatTheyDoNotKnow) {
  const std::map<std::string, Steps> unknown{
      {"scaled", {.activation = [](double z) { return 1.01 * activation64(z); }}},
      {"shifted", {.activation = [](double z) { return activation64(z) + 1e-3; }}},
      {"noise",
       {.kept =
            [state = 1u](float sum) mutable {
              state = state * 1664525u + 1013904223u;
              return sum * (1 + 1e-3f * static_cast<float>(state >> 8) * 0x1p-24f);
            }}},
      {"a tap of another row", {.filter_tap = [](int tap) { return (tap + 3) % 9; }}},
      {"half the bias", {.bias = [](const float* b, std::int64_t k) { return b[k] / 2; }}},
      {"five channels", {.channels = 5}},
  };
  for (const auto& [name, steps] : unknown) EXPECT_THAT(forensics_of(steps).matches, IsEmpty()) << name;
}

TEST(Forensics, NameAMistakeThatIsMadeAtSomeOutputsOnly) {
  const Forensics found =
      forensics_of({.bias = [](const float*, std::int64_t) { return 0.0f; },
                    .makes_mistake = [](const Chunk::At& at) { return at.p == kShape.p() - 1; }});
  EXPECT_THAT(found.matches, ElementsAre("bias left out"));
  EXPECT_FALSE(found.matches_everywhere);
  EXPECT_THAT(describe(found, kShape), HasSubstr("all in row p-1; matches, where wrong: bias left out"));
}

TEST(Forensics, NameAnOutputThatWasKeptFromAnEarlierInput) {
  const Variant caching =
      host_variant("caching", [outputs = std::make_shared<std::map<const float*, std::vector<float>>>()](
                                  const Problem& problem, const LaunchArgs& args) {
        std::vector<float>& kept = (*outputs)[args.x];
        const auto size = static_cast<std::size_t>(problem.shape.y_elements());
        if (kept.empty()) {
          convolve_on_host(problem, args);
          kept.assign(args.y, args.y + size);
        }
        std::copy(kept.begin(), kept.end(), args.y);
      });
  RunnerOptions options;
  options.run.fills = {Fill::normal};
  options.run.timing.samples = 2;
  const auto device = make_cpu_device();
  const CaseResult result = run_shape(*device, {&caching}, kShape, options).front();
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_THAT(result.detail, HasSubstr("matches: the output of an earlier input"));
}

// --- Where ----------------------------------------------------------------------------------------------

TEST(Forensics, SayWhatIsUnwritten) {
  const auto unwritten = [](std::function<bool(const Chunk::At&)> is) {
    return text_of({.writes = [is = std::move(is)](const Chunk::At& at) { return !is(at); }});
  };
  constexpr std::int64_t kLastP = kShape.p() - 1, kLastQ = kShape.q() - 1;  // 34 and 16
  using At = Chunk::At;
  EXPECT_EQ(unwritten([](const At&) { return true; }), "poison left in 100.0 % of the outputs, everywhere");
  EXPECT_EQ(unwritten([](const At& at) { return at.q == kLastQ; }),
            "poison left in 5.9 % of the outputs, all in column q-1");
  EXPECT_EQ(unwritten([](const At& at) { return at.p == kLastP; }),
            "poison left in 2.9 % of the outputs, all in row p-1");
  EXPECT_EQ(unwritten([](const At& at) { return at.p == 0; }),
            "poison left in 2.9 % of the outputs, all in row 0");
  EXPECT_EQ(unwritten([](const At& at) { return at.n == 2; }),
            "poison left in 33.3 % of the outputs, all in image n-1");
  EXPECT_EQ(unwritten([](const At& at) { return at.k >= 8; }),
            "poison left in 20.0 % of the outputs, all in the last 2 channels (k mod 8)");
  EXPECT_EQ(unwritten([](const At& at) { return at.k == 4; }),
            "poison left in 10.0 % of the outputs, all in channel 4");
  EXPECT_EQ(unwritten([](const At& at) { return at.p % 8 == 7; }),
            "poison left in 11.4 % of the outputs, all in rows with p mod 8 = 7");
  EXPECT_EQ(
      unwritten([](const At& at) { return at.p % 16 >= 13 && at.q % 8 < 3; }),
      "poison left in 7.1 % of the outputs, all in rows with p mod 16 in 13-15, columns with q mod 8 in 0-2");
  EXPECT_EQ(unwritten([](const At& at) { return at.n == 1 && at.k == 3 && at.p >= 4 && at.p < 9; }),
            "poison left in 0.48 % of the outputs, all in image 1, channel 3, rows 4-8");
}

TEST(Forensics, FindNoPlaceInScatter) {
  const Forensics found =
      forensics_of({.writes = [](const Chunk::At& at) { return (7 * at.p + 5 * at.q + at.k) % 11 != 0; }});
  EXPECT_THAT(found.places, IsEmpty());
  EXPECT_THAT(describe(found, kShape), HasSubstr("scattered"));
}

TEST(Forensics, MakeNoPlaceOfASingleOutput) {
  const Forensics found = forensics_of({.activation = mish64, .makes_mistake = [](const Chunk::At& at) {
                                          return at.n == 1 && at.k == 2 && at.p == 20 && at.q == 3;
                                        }});
  EXPECT_EQ(describe(found, kShape), "wrong scattered; matches, where wrong: one Mish only");
}

TEST(Forensics, TakeNaNForNoEvidenceOfOverflow) {
  const Forensics found =
      forensics_of({.activation = [](double z) { return z > 44 ? NAN : activation64(z); }}, Fill::wide);
  EXPECT_THAT(found.matches, IsEmpty());
}

TEST(Forensics, FindFewWrongOutputsAmongMany) {
  const Forensics found = forensics_of(
      {.bias = [](const float*, std::int64_t) { return 0.0f; },
       .makes_mistake = [](const Chunk::At& at) { return at.n == 1 && at.p == 20 && at.q == 3; }});
  EXPECT_EQ(describe(found, kShape),
            "wrong all in image 1, row 20, column 3; matches, where wrong: bias left out");
}

TEST(Forensics, TellPoisonFromOtherWrongOutputs) {
  const Forensics found =
      forensics_of({.activation = mish64, .writes = [](const Chunk::At& at) { return at.q != 0; }});
  EXPECT_EQ(found.wrong_share, 1);
  EXPECT_NEAR(found.poison_share, 1.0 / 17, 1e-12);
  EXPECT_EQ(describe(found, kShape),
            "poison left in 5.9 % of the outputs; wrong everywhere; matches: one Mish only");
}

TEST(Forensics, FindTheLimitOfThePreActivation) {
  const Forensics above =
      forensics_of({.activation = [](double z) { return z > 44 ? NAN : activation64(z); }}, Fill::tails);
  ASSERT_TRUE(above.wrong_above_z);
  EXPECT_GT(*above.wrong_above_z, 44);
  EXPECT_LT(*above.wrong_above_z, 45);
  EXPECT_FALSE(above.wrong_below_z);
  EXPECT_THAT(describe(above, kShape), HasSubstr("NaN scattered, all with z >= 44."));
  const Forensics below =
      forensics_of({.activation = [](double z) { return z < -20 ? 0 : activation64(z); }}, Fill::tails);
  ASSERT_TRUE(below.wrong_below_z);
  EXPECT_NEAR(*below.wrong_below_z, -20, 0.5);
}

TEST(Forensics, CopeWithTheSmallestShape) {
  const Shape one{.n = 1, .c = 1, .h = 3, .w = 3, .k = 1};
  Steps steps{.channels = 1, .activation = mish64};
  const FillResult result = check(planted(steps), Fill::normal, one);
  ASSERT_TRUE(result.forensics);
  EXPECT_EQ(describe(*result.forensics, one), "wrong everywhere; matches: one Mish only");
}

}  // namespace
}  // namespace convmish
