#include "cpu/simt/access_recorder.hpp"

#include <algorithm>

#include "cpu/simt/executor.hpp"

namespace convmish::simt {

void AccessRecorder::begin(const Launch& launch, Index3 block, const void* shared) {
  trace_.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  trace_.block = {block.x, block.y, block.z};
  block_extent_ = launch.block;
  shared_ = static_cast<const std::byte*>(shared);
  const auto threads = std::size_t{block_extent_.x} * block_extent_.y * block_extent_.z;
  trace_.threads.resize(threads);
  barriers_.assign(threads, 0);
}

void AccessRecorder::note(const void* element, std::size_t bytes, AccessKind kind, const char* array) {
  const std::size_t thread = running_thread();
  trace_.threads[thread].push_back(
      {.offset = static_cast<std::uint32_t>(static_cast<const std::byte*>(element) - shared_),
       .barriers = barriers_[thread],
       .array = array_index(array),
       .bytes = static_cast<std::uint8_t>(bytes),
       .kind = kind});
}

std::uint8_t AccessRecorder::array_index(const char* name) {
  const auto found = std::ranges::find(trace_.arrays, name);
  const auto index = static_cast<std::uint8_t>(found - trace_.arrays.begin());
  if (found == trace_.arrays.end()) trace_.arrays.emplace_back(name);
  return index;
}

std::optional<BlockTrace> trace_middle_block(const std::function<void()>& launch) {
  AccessRecorder recorder;
  struct Scope {
    explicit Scope(AccessRecorder& of_scope) { access_recorder = &of_scope; }
    ~Scope() { access_recorder = nullptr; }
  } const scope(recorder);
  launch();
  if (!recorder.has_begun()) return std::nullopt;
  return recorder.trace();
}

}  // namespace convmish::simt
