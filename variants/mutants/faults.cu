// Mutants that take the process, or its time, along.

#include <cstdlib>
#include <stdexcept>

#include "variants/mutants/mistaken_kernel.hpp"

namespace convmish {
namespace {

Plan throws(const Problem&) {
  return {.launch = [](const LaunchArgs&) { throw std::runtime_error("thrown on purpose"); }};
}

struct WildStoreKernel {
  static constexpr const char* kName = "wild_store";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  float* nowhere;

  __device__ void operator()(SharedStorage&) const { *nowhere = 1.0f; }
};

/// SIGSEGV on the CPU; on a GPU an illegal address, after which the process cannot use it.
Plan crashes(const Problem&) {
  return {.launch = [](const LaunchArgs& args) {
    launch_kernel(WildStoreKernel{reinterpret_cast<float*>(std::uintptr_t{64})}, dim3(1), args.stream);
  }};
}

struct EndlessKernel {
  static constexpr const char* kName = "endless";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  const volatile float* never_changes;

  __device__ void operator()(SharedStorage&) const {
    const float before = *never_changes;
    while (*never_changes == before) {
    }
  }
};

Plan hangs(const Problem& problem) {
  return {.launch = [bias = problem.bias](const LaunchArgs& args) {
    launch_kernel(EndlessKernel{bias}, dim3(1), args.stream);
  }};
}

/// An exit code of 0 must not look like success.
Plan exits(const Problem&) {
  return {.launch = [](const LaunchArgs&) { std::_Exit(0); }};
}

const RegisterVariant registered[] = {
    {mutant("throws", "throws an exception", throws)},
    {mutant("crashes", "writes to an address that is not mapped", crashes)},
    {mutant("hangs", "never ends", hangs)},
    {mutant("exits", "ends the process with exit code 0", exits)},
};

}  // namespace
}  // namespace convmish
