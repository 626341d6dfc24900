#include "cpu/simt/stack_pool.hpp"

#include <mutex>

#include "cpu/simt/stack_switch.hpp"

namespace convmish::simt {

namespace {

struct IdlePools {
  std::mutex mutex;
  std::vector<std::unique_ptr<StackPool>> pools;
};

IdlePools& idle_pools() {
  static IdlePools idle;
  return idle;
}

}  // namespace

StackPool::~StackPool() {
  for (auto& stack : free_) allocator_.deallocate(stack);
}

boost::context::stack_context StackPool::take() {
  if (free_.empty()) return allocator_.allocate();
  const auto stack = free_.back();
  free_.pop_back();
  clear_stack_marks({static_cast<const char*>(stack.sp) - stack.size, stack.size});
  return stack;
}

BorrowedStackPool::BorrowedStackPool() {
  auto& idle = idle_pools();
  const std::lock_guard lock(idle.mutex);
  if (idle.pools.empty()) {
    pool_ = std::make_unique<StackPool>();
  } else {
    pool_ = std::move(idle.pools.back());
    idle.pools.pop_back();
  }
}

BorrowedStackPool::~BorrowedStackPool() {
  auto& idle = idle_pools();
  const std::lock_guard lock(idle.mutex);
  idle.pools.push_back(std::move(pool_));
}

}  // namespace convmish::simt
