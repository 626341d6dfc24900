// Stacks for the executor's fibers, kept from one launch to the next: the first
// touch of a stack costs more than most kernel threads.
#pragma once

#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <vector>

namespace convmish::simt {

/// Used by one OS thread at a time. No fiber may live on its stacks when it changes hands.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  boost::context::stack_context take();
  void give_back(const boost::context::stack_context& stack) { free_.push_back(stack); }

 private:
  // A kernel thread's locals and, under a sanitizer, their red zones. Only touched pages cost memory. From
  // malloc, so that AddressSanitizer sees an overflow; a guard page each would exhaust the process's
  // mappings on machines with many cores.
  static constexpr std::size_t kStackBytes = 128 * 1024;

  boost::context::fixedsize_stack allocator_{kStackBytes};
  std::vector<boost::context::stack_context> free_;
};

/// A pool that is nobody's at the moment, or a new one; it goes back at the end of the borrower's scope.
/// Pools, not OS threads, outlive a launch, so that the process may fork between launches.
class BorrowedStackPool {
 public:
  BorrowedStackPool();
  ~BorrowedStackPool();
  BorrowedStackPool(const BorrowedStackPool&) = delete;
  BorrowedStackPool& operator=(const BorrowedStackPool&) = delete;

  StackPool& operator*() const { return *pool_; }

 private:
  std::unique_ptr<StackPool> pool_;
};

}  // namespace convmish::simt
