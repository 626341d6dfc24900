// Tells AddressSanitizer of every change of stack; without it, it would take a fiber's frames for wild
// memory. Debian's Boost is built without that, so the executor does it itself. Nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define CONVMISH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONVMISH_ASAN 1
#endif
#endif

#if defined(CONVMISH_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace convmish::simt {

/// The memory of a stack, lowest address first.
struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size = 0;
};

/// Just before a switch to the stack `to`. `state` keeps what arrive_on_stack wants when this stack goes
/// on; null where it never will.
inline void leave_stack([[maybe_unused]] void** state, [[maybe_unused]] const StackBounds& to) {
#if defined(CONVMISH_ASAN)
  __sanitizer_start_switch_fiber(state, to.bottom, to.size);
#endif
}

/// Just after a switch to this stack: `state` as leave_stack left it, null on a fresh stack. Returns the
/// stack that was left.
inline StackBounds arrive_on_stack([[maybe_unused]] void* state) {
  StackBounds from;
#if defined(CONVMISH_ASAN)
  __sanitizer_finish_switch_fiber(state, &from.bottom, &from.size);
#endif
  return from;
}

/// Forgets the marks that frames left on a stack which is to be used again: the last frames of a fiber are
/// left without returning.
inline void clear_stack_marks([[maybe_unused]] const StackBounds& stack) {
#if defined(CONVMISH_ASAN)
  __asan_unpoison_memory_region(stack.bottom, stack.size);
#endif
}

}  // namespace convmish::simt
