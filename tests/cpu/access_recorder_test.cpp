// From a kernel to its bank conflicts: what the executor records of one block, and what it costs.
#include "cpu/simt/access_recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/bank_conflicts.hpp"
#include "core/registry.hpp"
#include "tests/cpu/thread_order.hpp"
#include "variants/common/kernel.hpp"

namespace convmish {
namespace {

/// Thread t of a warp stores word t * kStride, then loads it.
template <unsigned kStride, template <class, ArrayName> class Element = PlainElement>
struct StridedKernel {
  using Recorded = StridedKernel<kStride, RecordedElement>;
  static constexpr const char* kName = "strided";
  static constexpr dim3 kBlock{32};
  struct SharedStorage {
    Element<float, "words"> words[31 * kStride + 1];
  };
  float* out;

  void operator()(SharedStorage& shared) const {
    shared.words[threadIdx.x * kStride] = static_cast<float>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = shared.words[threadIdx.x * kStride];
  }
};

template <class Kernel>
std::vector<SharedSite> sites_of(dim3 grid = {}) {
  std::vector<float> out(1024);
  const auto trace = simt::trace_middle_block([&] { launch_kernel(Kernel{out.data()}, grid, nullptr); });
  return trace ? shared_sites(*trace) : std::vector<SharedSite>();
}

struct StrideCase {
  unsigned stride;
  int degree;
  std::vector<SharedSite> sites;
};

TEST(BankConflicts, OfAStrideAreWhatItSharesWithTheNumberOfBanks) {
  for (const auto& [stride, degree, sites] :
       {StrideCase{0, 1, sites_of<StridedKernel<0>>()},  // a broadcast
        StrideCase{1, 1, sites_of<StridedKernel<1>>()}, StrideCase{2, 2, sites_of<StridedKernel<2>>()},
        StrideCase{3, 1, sites_of<StridedKernel<3>>()}, StrideCase{32, 32, sites_of<StridedKernel<32>>()},
        StrideCase{33, 1, sites_of<StridedKernel<33>>()}}) {
    SCOPED_TRACE("stride " + std::to_string(stride));
    ASSERT_EQ(sites.size(), 2u);
    EXPECT_EQ(sites[0].kind, AccessKind::store);
    EXPECT_EQ(sites[1].kind, AccessKind::load);
    for (const SharedSite& site : sites) {
      EXPECT_EQ(site.array, "words");
      EXPECT_EQ(site.bytes, 4u);
      EXPECT_EQ(site.instructions, 1);
      EXPECT_EQ(site.wavefronts, degree);
      EXPECT_EQ(site.least_wavefronts, 1);
      EXPECT_EQ(site.worst_degree, degree);
    }
  }
}

const Variant& cpu_variant(std::string_view name) {
  return *std::ranges::find_if(Registry::instance().variants(), [&](const Variant& variant) {
    return variant.name == name && variant.device == DeviceKind::cpu;
  });
}

BlockTrace trace_of(std::string_view name, const Shape& shape) {
  std::vector<float> x(static_cast<std::size_t>(shape.x_elements())),
      filter(static_cast<std::size_t>(shape.filter_elements())), bias(static_cast<std::size_t>(shape.k)),
      y(static_cast<std::size_t>(shape.y_elements()));
  const Plan plan = cpu_variant(name).prepare({.shape = shape, .filter = filter.data(), .bias = bias.data()});
  return *simt::trace_middle_block([&] { plan.launch({.x = x.data(), .y = y.data()}); });
}

/// A row: array, kind, bytes a lane, instructions, wavefronts, fewest wavefronts.
struct Expected {
  const char* array;
  AccessKind kind;
  std::uint32_t bytes;
  std::int64_t instructions, wavefronts, least;
};

void expect_sites(const std::vector<SharedSite>& sites, const std::vector<Expected>& expected) {
  ASSERT_EQ(sites.size(), expected.size());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    SCOPED_TRACE("site " + std::to_string(i));
    EXPECT_EQ(sites[i].array, expected[i].array);
    EXPECT_EQ(sites[i].kind, expected[i].kind);
    EXPECT_EQ(sites[i].bytes, expected[i].bytes);
    EXPECT_EQ(sites[i].instructions, expected[i].instructions);
    EXPECT_EQ(sites[i].wavefronts, expected[i].wavefronts);
    EXPECT_EQ(sites[i].least_wavefronts, expected[i].least);
  }
}

// The instructions are those that nvcc 13.0 forms for sm_90a: 72 LDS and 18 LDS.128 a warp and step for
// `tiled`, 48 LDS.64 and 18 LDS.128 for `coarsened_1x2`; 8 steps by 8 and by 4 warps here. The shares of
// conflicts come close to what a profiler counted on an H200: 609 M of 1608 M wavefronts and 404 M of 1050 M.
// Where it counts a little more, other traffic meets in the banks.
constexpr Shape kEightSteps{.n = 1, .c = 64, .h = 66, .w = 66, .k = 3};

TEST(BankConflicts, OfTiledAreWhatAProfilerCounts) {
  const BlockTrace trace = trace_of("tiled", kEightSteps);
  EXPECT_EQ(trace.grid, (std::array<std::int64_t, 3>{16, 3, 1}));
  EXPECT_EQ(trace.block, (std::array<std::int64_t, 3>{8, 1, 0}));
  EXPECT_EQ(trace.threads.size(), 256u);
  const auto sites = shared_sites(trace);
  expect_sites(sites, {{"x", AccessKind::store, 4, 704, 704, 704},
                       {"taps", AccessKind::store, 4, 24, 24, 24},
                       {"x", AccessKind::load, 4, 8 * 8 * 72, 2 * 8 * 8 * 72, 8 * 8 * 72},
                       {"taps", AccessKind::load, 16, 8 * 8 * 18, 2 * 8 * 8 * 18, 2 * 8 * 8 * 18}});
  EXPECT_NEAR(total(sites).conflict_share(), 609.0 / 1608.0, 0.005);
}

TEST(BankConflicts, OfCoarsenedAreWhatAProfilerCounts) {
  const auto sites = shared_sites(trace_of("coarsened_1x2", kEightSteps));
  expect_sites(sites, {{"x", AccessKind::store, 4, 704, 704, 704},
                       {"taps", AccessKind::store, 4, 24, 24, 24},
                       {"x", AccessKind::load, 8, 4 * 8 * 48, 4 * 4 * 8 * 48, 2 * 4 * 8 * 48},
                       {"taps", AccessKind::load, 16, 4 * 8 * 18, 2 * 4 * 8 * 18, 2 * 4 * 8 * 18}});
  EXPECT_NEAR(total(sites).conflict_share(), 404.0 / 1050.0, 0.005);
}

TEST(BankConflicts, DoNotDependOnTheOrderOfThreads) {
  const auto forward = shared_sites(trace_of("tiled", kEightSteps));
  const OrderScope scope(simt::ThreadOrder::reverse);
  const auto reverse = shared_sites(trace_of("tiled", kEightSteps));
  EXPECT_EQ(total(forward).wavefronts, total(reverse).wavefronts);
  EXPECT_EQ(total(forward).least_wavefronts, total(reverse).least_wavefronts);
}

TEST(TraceMiddleBlock, OfAKernelWithoutSharedMemoryIsEmpty) {
  EXPECT_TRUE(shared_sites(trace_of("naive", kEightSteps)).empty());
}

struct UnrecordedKernel {
  static constexpr const char* kName = "unrecorded";
  static constexpr dim3 kBlock{32};
  struct SharedStorage {
    float words[32];
  };
  float* out;

  void operator()(SharedStorage& shared) const {
    shared.words[threadIdx.x] = 1.0f;
    out[threadIdx.x] = shared.words[threadIdx.x];
  }
};

TEST(TraceMiddleBlock, IsNothingWhereTheKernelHasNoRecordedForm) {
  std::vector<float> out(32, 0.0f);
  EXPECT_FALSE(simt::trace_middle_block([&] { launch_kernel(UnrecordedKernel{out.data()}, {}, nullptr); }));
  EXPECT_EQ(out[0], 0.0f) << "it ran";
}

TEST(TraceMiddleBlock, RunsOneBlockAndLeavesLaterLaunchesAsTheyWere) {
  const Shape shape{.n = 1, .c = 8, .h = 34, .w = 34, .k = 1};  // 2 x 2 tiles
  std::vector<float> x(static_cast<std::size_t>(shape.x_elements()), 1.0f), filter(8 * 9, 1.0f), bias(1),
      y(static_cast<std::size_t>(shape.y_elements()));
  const Plan plan =
      cpu_variant("tiled").prepare({.shape = shape, .filter = filter.data(), .bias = bias.data()});
  const auto launch = [&] { plan.launch({.x = x.data(), .y = y.data()}); };
  const auto written = [&] { return std::ranges::count_if(y, [](float value) { return value != 0.0f; }); };
  EXPECT_TRUE(simt::trace_middle_block(launch));
  EXPECT_EQ(written(), 256);
  launch();
  EXPECT_EQ(written(), 1024);
}

}  // namespace
}  // namespace convmish
