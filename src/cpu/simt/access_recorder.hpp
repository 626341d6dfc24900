// Records what the threads of one block read and write in shared memory.
//
// The kernel runs in its recorded form, whose shared arrays are of RecordedElement: no other run of any
// kernel looks whether something is to be recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/bank_conflicts.hpp"
#include "cpu/simt/dialect.hpp"

namespace convmish::simt {

struct Launch;

class AccessRecorder {
 public:
  /// The block that is about to run, and where its shared memory starts.
  void begin(const Launch& launch, Index3 block, const void* shared);
  bool has_begun() const { return !trace_.threads.empty(); }

  // By the running thread, threadIdx:
  void note(const void* element, std::size_t bytes, AccessKind kind, const char* array);
  void pass_barrier() { ++barriers_[running_thread()]; }

  const BlockTrace& trace() const { return trace_; }

 private:
  std::size_t running_thread() const {
    return threadIdx.x + block_extent_.x * (threadIdx.y + std::size_t{block_extent_.y} * threadIdx.z);
  }
  std::uint8_t array_index(const char* name);

  BlockTrace trace_;
  dim3 block_extent_;
  const std::byte* shared_ = nullptr;
  std::vector<std::uint32_t> barriers_;  // passed, by thread
};

/// Not null while launches from this OS thread are recorded.
inline constinit thread_local AccessRecorder* access_recorder = nullptr;

/// Calls `launch`, but of the kernels that it launches only one block runs: the middle one of the first. What
/// that did is returned; nothing where no kernel was launched, or where its accesses cannot be recorded.
/// Throws what launch() throws.
std::optional<BlockTrace> trace_middle_block(const std::function<void()>& launch);

}  // namespace convmish::simt
