// The SIMT executor: it runs kernels as a GPU would, and shows the mistakes that it is built to show.
#include "cpu/simt/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/cpu/thread_order.hpp"
#include "variants/common/kernel.hpp"

namespace convmish {
namespace {

using simt::ThreadOrder;
using testing::HasSubstr;

template <class Call>
std::string device_error(Call&& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

unsigned linear_thread(dim3 block) {
  return threadIdx.x + block.x * (threadIdx.y + block.y * threadIdx.z);
}

struct CountVisits {
  static constexpr const char* kName = "count_visits";
  static constexpr dim3 kBlock{4, 3, 2};
  using SharedStorage = NoSharedStorage;
  dim3 grid;
  int* visits;

  void operator()(SharedStorage&) const {
    const unsigned block = blockIdx.x + grid.x * (blockIdx.y + grid.y * blockIdx.z);
    ++visits[block * 24 + linear_thread(kBlock)];
  }
};

TEST(Executor, RunsEveryThreadOfEveryBlockOnce) {
  const dim3 grid{5, 3, 7};
  std::vector<int> visits(5 * 3 * 7 * 24);
  launch_kernel(CountVisits{grid, visits.data()}, grid, nullptr);
  EXPECT_THAT(visits, testing::Each(1));
}

// Every thread hands its value to its neighbour, a step further at each of kSteps barriers; and keeps it in
// a local across them.
template <bool kBarrierAfterRead>
struct Rotate {
  static constexpr const char* kName = "rotate";
  static constexpr unsigned kThreads = 96, kSteps = 5;
  static constexpr dim3 kBlock{kThreads};
  struct SharedStorage {
    int slot[kThreads];
  };
  int* result;

  void operator()(SharedStorage& shared) const {
    const unsigned self = threadIdx.x;
    int value = static_cast<int>(self);
    for (unsigned step = 0; step < kSteps; ++step) {
      shared.slot[self] = value;
      __syncthreads();
      value = shared.slot[(self + 1) % kThreads];
      if (kBarrierAfterRead) __syncthreads();  // without it a fast thread overwrites what a slow one reads
    }
    result[blockIdx.x * kThreads + threadIdx.x] = value;
  }
};

template <bool kBarrierAfterRead>
std::vector<int> rotate(ThreadOrder order, unsigned blocks) {
  using Kernel = Rotate<kBarrierAfterRead>;
  const OrderScope scope(order);
  std::vector<int> result(blocks * Kernel::kThreads);
  launch_kernel(Kernel{result.data()}, dim3(blocks), nullptr);
  return result;
}

TEST(Executor, BarriersOrderSharedMemoryInEitherThreadOrder) {
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::reverse}) {
    const auto result = rotate<true>(order, 40);
    for (unsigned i = 0; i < result.size(); ++i)
      ASSERT_EQ(result[i], static_cast<int>((i % 96 + 5) % 96)) << i;
  }
}

TEST(Executor, MissingBarrierChangesTheResultWithTheThreadOrder) {
  EXPECT_NE(rotate<false>(ThreadOrder::forward, 1), rotate<false>(ThreadOrder::reverse, 1));
}

struct RecordTurns {
  static constexpr const char* kName = "record_turns";
  static constexpr dim3 kBlock{2, 2};
  using SharedStorage = NoSharedStorage;
  std::vector<unsigned>* turns;

  void operator()(SharedStorage&) const {
    turns->push_back(linear_thread(kBlock));
    __syncthreads();
    turns->push_back(linear_thread(kBlock));
  }
};

TEST(Executor, ThreadsTakeTurnsInTheOrderAskedFor) {
  std::vector<unsigned> forward, reverse;
  launch_kernel(RecordTurns{&forward}, dim3(1), nullptr);
  {
    const OrderScope scope(ThreadOrder::reverse);
    launch_kernel(RecordTurns{&reverse}, dim3(1), nullptr);
  }
  EXPECT_THAT(forward, testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(reverse, testing::ElementsAre(3, 2, 1, 0, 3, 2, 1, 0));
}

struct ReadUnwrittenShared {
  static constexpr const char* kName = "read_unwritten_shared";
  static constexpr dim3 kBlock{32};
  struct SharedStorage {
    float value[32];
  };
  float* result;

  void operator()(SharedStorage& shared) const {
    result[blockIdx.x * 32 + threadIdx.x] = shared.value[threadIdx.x];
    shared.value[threadIdx.x] = 1;  // must not be seen by the next block
  }
};

TEST(Executor, SharedMemoryIsNanAtEveryBlockStart) {
  std::vector<float> result(64 * 32, 0.0f);
  launch_kernel(ReadUnwrittenShared{result.data()}, dim3(64), nullptr);
  for (const float value : result) ASSERT_TRUE(std::isnan(value));
}

struct ExitEarly {
  static constexpr const char* kName = "exit_early";
  static constexpr dim3 kBlock{64};
  struct SharedStorage {
    int sum;
  };
  int* result;

  void operator()(SharedStorage& shared) const {
    if (threadIdx.x == 0) shared.sum = 0;
    __syncthreads();
    if (threadIdx.x % 3 == 0) return;  // the others' barriers do not wait for these
    __syncthreads();
    shared.sum += 1;
    __syncthreads();
    result[threadIdx.x] = shared.sum;
  }
};

TEST(Executor, BarriersDoNotWaitForThreadsThatHaveEnded) {
  std::vector<int> result(64, -1);
  launch_kernel(ExitEarly{result.data()}, dim3(1), nullptr);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(result[i], i % 3 == 0 ? -1 : 42) << i;
}

struct DivergentBarrier {
  static constexpr const char* kName = "divergent_barrier";
  static constexpr dim3 kBlock{8};
  using SharedStorage = NoSharedStorage;

  void operator()(SharedStorage&) const {
    if (threadIdx.x < 3) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  }
};

TEST(Executor, ThreadsAtDifferentBarriersAreADeadlock) {
  const std::string message = device_error([] { launch_kernel(DivergentBarrier{}, dim3(1, 1, 1), nullptr); });
  EXPECT_THAT(message, HasSubstr("kernel divergent_barrier, block 0x0x0: deadlock"));
  EXPECT_THAT(message, HasSubstr("thread 3x0x0"));
}

struct CountDestructions {
  int* count;
  ~CountDestructions() { ++*count; }
};

struct ThrowAfterBarrier {
  static constexpr const char* kName = "throw_after_barrier";
  static constexpr dim3 kBlock{16};
  using SharedStorage = NoSharedStorage;
  int* destroyed;

  void operator()(SharedStorage&) const {
    const CountDestructions guard{destroyed};
    __syncthreads();
    if (threadIdx.x == 5) throw std::runtime_error("thread five");
    __syncthreads();
  }
};

TEST(Executor, ExceptionLeavesTheLaunchAndUnwindsWaitingThreads) {
  int destroyed = 0;
  EXPECT_THAT([&] { launch_kernel(ThrowAfterBarrier{&destroyed}, dim3(1), nullptr); },
              testing::ThrowsMessage<std::runtime_error>("thread five"));
  EXPECT_EQ(destroyed, 16);
}

struct ThrowInOneBlock {
  static constexpr const char* kName = "throw_in_one_block";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  void operator()(SharedStorage&) const {
    if (blockIdx.x == 700) throw std::runtime_error("block 700");
  }
};

TEST(Executor, ExceptionOfAnyBlockLeavesTheLaunch) {
  EXPECT_THROW(launch_kernel(ThrowInOneBlock{}, dim3(1000), nullptr), std::runtime_error);
  launch_kernel(ThrowInOneBlock{}, dim3(700), nullptr);  // and the next launch is none the worse
}

simt::Launch empty_launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
  return {.kernel_name = "empty",
          .grid = grid,
          .block = block,
          .shared_bytes = shared_bytes,
          .shared_alignment = 16,
          .kernel = nullptr,
          .run_thread = [](const void*, void*) {}};
}

TEST(Executor, LaunchesAtTheLimitsRun) {
  simt::launch(empty_launch({1, 65535, 1}, {1}));
  simt::launch(empty_launch({1, 1, 65535}, {1}));
  simt::launch(empty_launch({1}, {1024}));
  simt::launch(empty_launch({1}, {4, 4, 64}, 232448));
}

TEST(Executor, RefusesTheLaunchesThatAGpuRefuses) {
  const auto refusal = [](dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
    return device_error([&] { simt::launch(empty_launch(grid, block, shared_bytes)); });
  };
  EXPECT_THAT(refusal({0}, {1}), HasSubstr("kernel empty: grid 0x1x1 is empty"));
  EXPECT_THAT(refusal({1}, {1, 0}), HasSubstr("block 1x0x1 is empty"));
  EXPECT_THAT(refusal({0x80000000u}, {1}), HasSubstr("exceeds 2147483647x65535x65535"));
  EXPECT_THAT(refusal({1, 65536}, {1}), HasSubstr("grid 1x65536x1 exceeds"));
  EXPECT_THAT(refusal({1, 1, 65536}, {1}), HasSubstr("grid 1x1x65536 exceeds"));
  EXPECT_THAT(refusal({1}, {1025}), HasSubstr("block 1025x1x1 exceeds 1024 threads"));
  EXPECT_THAT(refusal({1}, {64, 32}), HasSubstr("exceeds 1024 threads"));
  EXPECT_THAT(refusal({1}, {1, 1, 65}), HasSubstr("64 in z"));
  EXPECT_THAT(refusal({1}, {65536, 65536}), HasSubstr("exceeds"));  // the product is 0 in 32 bits
  EXPECT_THAT(refusal({1}, {1}, 232449), HasSubstr("232449 bytes of shared memory exceed 232448"));
}

TEST(Executor, LaunchGeometryIsThatOfTheKernel) {
  const LaunchGeometry geometry = launch_geometry<Rotate<true>>(dim3(7, 2));
  EXPECT_THAT(geometry.grid, testing::ElementsAre(7, 2, 1));
  EXPECT_THAT(geometry.block, testing::ElementsAre(96, 1, 1));
  EXPECT_EQ(geometry.shared_bytes, 96 * 4);
  EXPECT_FALSE(geometry.registers.has_value());
}

// A stray index, opaque to the compiler. `outside` leaves the SharedStorage object (AddressSanitizer's red
// zone), otherwise only the first array in it (UBSan's bounds).
struct StrayIndex {
  static constexpr const char* kName = "stray_index";
  static constexpr dim3 kBlock{8};
  struct SharedStorage {
    float first[8];
    float second[8];
  };
  unsigned offset;
  bool outside;

  void operator()(SharedStorage& shared) const {
    __syncthreads();  // so that it happens on a fiber that has been switched away from
    if (outside) {
      float* end = shared.second;
      end[threadIdx.x + offset] = 0;
    } else {
      shared.first[threadIdx.x + offset] = 0;
    }
  }
};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(ExecutorDeathTest, SharedIndexOutsideTheObjectIsCaught) {
  if (!kSanitized) GTEST_SKIP() << "this build has no AddressSanitizer";
  launch_kernel(StrayIndex{0, true}, dim3(1), nullptr);
  EXPECT_DEATH(launch_kernel(StrayIndex{1, true}, dim3(1), nullptr), "heap-buffer-overflow");
}

TEST(ExecutorDeathTest, SharedIndexOutsideItsArrayIsCaught) {
  if (!kSanitized) GTEST_SKIP() << "this build has no sanitizers";
  launch_kernel(StrayIndex{0, false}, dim3(1), nullptr);
  EXPECT_DEATH(launch_kernel(StrayIndex{1, false}, dim3(1), nullptr), "index 8 out of bounds");
}

}  // namespace
}  // namespace convmish
