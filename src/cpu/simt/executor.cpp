#include "cpu/simt/executor.hpp"

#include <algorithm>
#include <atomic>
#include <boost/context/fiber.hpp>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "cpu/simt/access_recorder.hpp"
#include "cpu/simt/stack_pool.hpp"
#include "cpu/simt/stack_switch.hpp"

namespace convmish::simt {

namespace {

std::atomic<ThreadOrder> thread_order{ThreadOrder::forward};

std::string extent(dim3 d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

[[noreturn]] void refuse(const Launch& launch, const std::string& why) {
  throw DeviceError(std::string("kernel ") + launch.kernel_name + ": " + why);
}

void check_launch(const Launch& launch) {
  const dim3 grid = launch.grid, block = launch.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) refuse(launch, "grid " + extent(grid) + " is empty");
  if (block.x == 0 || block.y == 0 || block.z == 0) refuse(launch, "block " + extent(block) + " is empty");
  if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ)
    refuse(launch, "grid " + extent(grid) + " exceeds " + extent({kMaxGridX, kMaxGridYZ, kMaxGridYZ}));
  // Each extent first: the product of three could wrap.
  if (block.x > kMaxThreads || block.y > kMaxThreads || block.z > kMaxBlockZ ||
      block.x * block.y * block.z > kMaxThreads)
    refuse(launch, "block " + extent(block) + " exceeds " + std::to_string(kMaxThreads) + " threads, " +
                       std::to_string(kMaxBlockZ) + " in z");
  if (launch.shared_bytes > kMaxSharedBytes)
    refuse(launch, std::to_string(launch.shared_bytes) + " bytes of shared memory exceed " +
                       std::to_string(kMaxSharedBytes));
}

/// Index of element i of a box, x fastest.
Index3 unflatten(std::uint64_t i, dim3 box) {
  return {static_cast<unsigned>(i % box.x), static_cast<unsigned>(i / box.x % box.y),
          static_cast<unsigned>(i / box.x / box.y)};
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

/// Thrown out of __syncthreads, so that a waiting thread leaves its kernel, destructors and all, when its
/// block has failed. Never leaves the executor.
struct BlockAbandoned {};

/// Shared memory of one block: exactly its bytes, on the heap, for the red zones around it.
class SharedMemory {
 public:
  SharedMemory(std::size_t bytes, std::size_t alignment)
      : alignment_{alignment}, data_(operator new(bytes, alignment_)) {
    std::memset(data_, 0xff, bytes);  // NaN: a value read before it was written shows in the result
  }
  ~SharedMemory() { operator delete(data_, alignment_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::align_val_t alignment_;
  void* data_;
};

/// Boost's view of a StackPool.
struct PooledStack {
  StackPool* pool;
  boost::context::stack_context stack;

  boost::context::stack_context allocate() const { return stack; }
  void deallocate(boost::context::stack_context& done) const { pool->give_back(done); }
};

/// Runs one block after another on the calling OS thread.
class BlockRunner {
 public:
  BlockRunner(const Launch& launch, ThreadOrder order, StackPool& stacks)
      : launch_(launch),
        order_(order),
        stacks_(stacks),
        threads_(launch.block.x * launch.block.y * launch.block.z) {
    running_here = this;
  }
  ~BlockRunner() { running_here = nullptr; }
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Throws the first exception of the block's threads.
  void run(std::uint64_t block) {
    const SharedMemory shared(launch_.shared_bytes, launch_.shared_alignment);
    shared_ = shared.data();
    blockIdx = unflatten(block, launch_.grid);
    if (access_recorder != nullptr) access_recorder->begin(launch_, blockIdx, shared_);
    started_ = 0;
    failure_ = nullptr;
    while (started_ < threads_ && !failure_) {
      Fiber fiber;
      start(fiber);
      keep_if_waiting(std::move(fiber));
    }
    while (!waiting_.empty()) {
      if (!failure_) check_same_barrier();
      released_.swap(waiting_);
      for (Fiber& fiber : released_) {
        resume(fiber);
        keep_if_waiting(std::move(fiber));
      }
      released_.clear();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void wait_at_barrier(const std::source_location& where) {
    if (access_recorder != nullptr) access_recorder->pass_barrier();
    current_->thread = threadIdx;
    current_->barrier = where;
    void* state = nullptr;
    leave_stack(&state, scheduler_stack_);
    scheduler_ = std::move(scheduler_).resume();
    arrive_on_stack(state);
    if (failure_) throw BlockAbandoned{};
    threadIdx = current_->thread;  // current_ has been set anew: fibers move between the lists
  }

  /// The runner of the calling OS thread; null outside launches.
  static thread_local BlockRunner* running_here;

 private:
  /// A stack with, while it waits, one kernel thread on it.
  struct Fiber {
    boost::context::fiber context;  // empty once the fiber has ended
    StackBounds stack;
    Index3 thread;
    std::source_location barrier;
  };

  void start(Fiber& fiber) {
    const auto stack = stacks_.take();
    fiber.stack = {static_cast<const char*>(stack.sp) - stack.size, stack.size};
    fiber.context = boost::context::fiber(std::allocator_arg, PooledStack{&stacks_, stack},
                                          [this](boost::context::fiber&& scheduler) {
                                            scheduler_stack_ = arrive_on_stack(nullptr);
                                            scheduler_ = std::move(scheduler);
                                            // A thread that ends without having waited leaves its stack to
                                            // the next: no switch between them.
                                            while (started_ < threads_ && !failure_) run_next_thread();
                                            leave_stack(nullptr, scheduler_stack_);
                                            return std::move(scheduler_);
                                          });
    resume(fiber);
  }

  void resume(Fiber& fiber) {
    current_ = &fiber;
    void* state = nullptr;
    leave_stack(&state, fiber.stack);
    fiber.context = std::move(fiber.context).resume();
    arrive_on_stack(state);
  }

  void run_next_thread() {
    const unsigned turn = started_++;
    threadIdx = unflatten(order_ == ThreadOrder::forward ? turn : threads_ - 1 - turn, launch_.block);
    try {
      launch_.run_thread(launch_.kernel, shared_);
    } catch (const BlockAbandoned&) {
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void keep_if_waiting(Fiber&& fiber) {
    if (fiber.context) waiting_.push_back(std::move(fiber));
  }

  /// CUDA leaves it undefined when threads of a block wait at different barriers. (Threads that have ended
  /// are not waited for, as on the GPU.)
  void check_same_barrier() {
    const Fiber& first = waiting_.front();
    for (const Fiber& fiber : waiting_) {
      if (same_place(fiber.barrier, first.barrier)) continue;
      const auto place = [](const Fiber& f) {
        return "thread " + extent({f.thread.x, f.thread.y, f.thread.z}) + " in line " +
               std::to_string(f.barrier.line());
      };
      failure_ = std::make_exception_ptr(
          DeviceError(std::string("kernel ") + launch_.kernel_name + ", block " +
                      extent({blockIdx.x, blockIdx.y, blockIdx.z}) + ": deadlock, " + place(first) + " and " +
                      place(fiber) + " wait at different __syncthreads of " + first.barrier.file_name()));
      return;
    }
  }

  const Launch& launch_;
  const ThreadOrder order_;
  StackPool& stacks_;
  const unsigned threads_;

  // Of the block that runs:
  void* shared_ = nullptr;
  unsigned started_ = 0;
  std::exception_ptr failure_;
  Fiber* current_ = nullptr;
  boost::context::fiber scheduler_;  // where run() goes on when the current fiber waits or ends
  StackBounds scheduler_stack_;
  std::vector<Fiber> waiting_, released_;  // in the order in which threads take turns
};

thread_local BlockRunner* BlockRunner::running_here = nullptr;

/// In its recorded form, on the calling OS thread; of the first launch only.
void record_middle_block(Launch launch, ThreadOrder order) {
  if (access_recorder->has_begun() || launch.run_recorded_thread == nullptr) return;
  launch.run_thread = launch.run_recorded_thread;
  const dim3 grid = launch.grid;
  const std::uint64_t row = grid.y / 2 + std::uint64_t{grid.y} * (grid.z / 2);
  const BorrowedStackPool stacks;
  BlockRunner(launch, order, *stacks).run(grid.x / 2 + grid.x * row);
}

}  // namespace

void wait_at_barrier(const std::source_location& where) {
  BlockRunner::running_here->wait_at_barrier(where);
}

void launch(const Launch& launch) {
  check_launch(launch);
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const ThreadOrder order = thread_order.load();
  if (access_recorder != nullptr) return record_middle_block(launch, order);

  std::atomic<std::uint64_t> next_block{0};
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    const BorrowedStackPool stacks;
    BlockRunner runner(launch, order, *stacks);
    try {
      for (std::uint64_t block; !failed && (block = next_block++) < blocks;) runner.run(block);
    } catch (...) {
      failed = true;
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };

  const auto workers = std::min<std::uint64_t>(blocks, std::max(1u, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> others;
    for (std::uint64_t i = 1; i < workers; ++i) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

ThreadOrder set_thread_order(ThreadOrder order) {
  return thread_order.exchange(order);
}

}  // namespace convmish::simt
