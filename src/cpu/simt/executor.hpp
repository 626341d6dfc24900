// Runs a CUDA kernel's threads on the CPU.
//
// Blocks are spread over the machine's hardware threads. The threads of a block take turns on one of them:
// each runs until its end or its next __syncthreads, and those that wait go on when all of them wait. A
// thread that waits keeps its stack (a Boost.Context fiber); threads that never wait share one.
//
// It is built to expose mistakes: shared memory is a heap object of exactly the kernel's size that starts
// as NaN, the order of threads can be turned round, and what a GPU would refuse or leave undefined throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/simt/dialect.hpp"

namespace convmish::simt {

// Limits of a launch: CUDA C++ Programming Guide, "Compute Capabilities".
inline constexpr unsigned kMaxGridX = 0x7fffffff;
inline constexpr unsigned kMaxGridYZ = 65535;
inline constexpr unsigned kMaxThreads = 1024;  // a block
inline constexpr unsigned kMaxBlockZ = 64;
inline constexpr std::size_t kMaxSharedBytes = 232448;  // a block: 227 KB, opt-in limit of sm_90

struct Launch {
  const char* kernel_name;
  dim3 grid, block;
  std::size_t shared_bytes;
  std::size_t shared_alignment;
  const void* kernel;                                    // the functor, shared by all threads
  void (*run_thread)(const void* kernel, void* shared);  // one thread, from its start to its end
  /// The same with every access to shared memory recorded; null for a kernel that has no such form.
  void (*run_recorded_thread)(const void* kernel, void* shared);
};

/// Runs all blocks and returns when they have ended. Throws DeviceError where a GPU would refuse the
/// launch or where threads of a block wait at different barriers, and whatever a kernel thread throws.
void launch(const Launch& launch);

/// The order in which the threads of a block take turns. The result of a kernel that has all its barriers
/// does not depend on it.
enum class ThreadOrder { forward, reverse };

/// For all launches that start from now on; returns the order until now (at first: forward).
ThreadOrder set_thread_order(ThreadOrder order);

}  // namespace convmish::simt
