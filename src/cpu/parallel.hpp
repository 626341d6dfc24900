// Loops over all hardware threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace convmish::cpu {

inline int hardware_threads() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// Calls body(worker, i) for i in [0, count), items handed out one at a time; worker < hardware_threads().
/// The first exception is thrown here once all workers have stopped.
template <class Body>
void parallel_for(std::int64_t count, Body body) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&](int worker) {
    try {
      for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(worker, i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(failure_lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> workers;
  const auto threads = static_cast<int>(std::min<std::int64_t>(hardware_threads(), count));
  for (int worker = 1; worker < threads; ++worker) workers.emplace_back(work, worker);
  work(0);
  workers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

/// The same over ranges: body(worker, begin, end) with about `grain` items each.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, Body body) {
  parallel_for((count + grain - 1) / grain, [&](int worker, std::int64_t range) {
    body(worker, range * grain, std::min(count, (range + 1) * grain));
  });
}

}  // namespace convmish::cpu
