// Mutants that can be right, but only where they expect to be checked: what a search for speed finds when
// the checks let it. Each wraps the right kernel.

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>

#include "variants/mutants/mistaken_kernel.hpp"

namespace convmish {
namespace {

using RightKernel = MistakenKernel<NoMistake>;

/// What a kernel decided for those behind it on the stream.
struct Decision {
  int skip;  // not 0: the work is not needed
  int slot;  // of the outputs that are kept
};

/// The right kernel, unless it was decided to skip it.
struct SkippableKernel {
  static constexpr const char* kName = "skippable";
  static constexpr dim3 kBlock = RightKernel::kBlock;
  using SharedStorage = NoSharedStorage;

  RightKernel kernel;
  const Decision* decision;

  __device__ void operator()(SharedStorage& shared) const {
    if (!decision->skip) kernel(shared);
  }
};

struct CopyKernel {
  static constexpr const char* kName = "copy";
  static constexpr unsigned kThreads = 256;
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;

  const float* from;
  float* to;
  std::int64_t count;

  __device__ void operator()(SharedStorage&) const {
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < count) to[i] = from[i];
  }
};

void copy(const float* from, float* to, std::int64_t count, Stream stream) {
  launch_kernel(CopyKernel{from, to, count}, elementwise_grid(count, CopyKernel::kThreads), stream);
}

void launch_skippable(const Problem& problem, const LaunchArgs& args, const Decision* decision) {
  launch_kernel(SkippableKernel{mistaken_kernel<NoMistake>(problem, args.x, args.y), decision},
                elementwise_grid(problem.shape.y_elements(), RightKernel::kThreads), args.stream);
}

float* allocate_output(const Problem& problem) {
  return static_cast<float*>(
      problem.memory->allocate(sizeof(float) * static_cast<std::size_t>(problem.shape.y_elements())));
}

// --- by counting calls ----------------------------------------------------------------------------------

template <int kCalls>
Plan right_for_calls(const Problem& problem) {
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem),
                     calls = std::make_shared<int>(0)](const LaunchArgs& args) {
    if (++*calls <= kCalls) plan.launch(args);
  }};
}

// --- by the state of y ----------------------------------------------------------------------------------

/// A y that holds plausible numbers is not being checked.
struct LooksTimedKernel {
  static constexpr const char* kName = "looks_timed";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  const float* y;
  Decision* decision;

  __device__ void operator()(SharedStorage&) const { decision->skip = fabsf(*y) < 1e6f; }
};

Plan idle_when_timed(const Problem& problem) {
  auto* const decision = static_cast<Decision*>(problem.memory->allocate(sizeof(Decision)));
  return {.launch = [problem, decision](const LaunchArgs& args) {
    launch_kernel(LooksTimedKernel{args.y, decision}, dim3(1), args.stream);
    launch_skippable(problem, args, decision);
  }};
}

// --- by keeping outputs ---------------------------------------------------------------------------------

Plan caches_by_pointer(const Problem& problem) {
  struct Kept {
    const float* x;
    float* y;
  };
  std::array<Kept, 2> kept{{{nullptr, allocate_output(problem)}, {nullptr, allocate_output(problem)}}};
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem), count = problem.shape.y_elements(),
                     kept = std::make_shared<decltype(kept)>(kept)](const LaunchArgs& args) {
    for (Kept& entry : *kept) {
      if (entry.x == args.x) return copy(entry.y, args.y, count, args.stream);
      if (entry.x) continue;
      entry.x = args.x;
      plan.launch(args);
      return copy(args.y, entry.y, count, args.stream);
    }
    plan.launch(args);
  }};
}

/// Takes two x for the same when a few of their elements are.
struct DigestKernel {
  static constexpr const char* kName = "digest";
  static constexpr dim3 kBlock{1};
  static constexpr int kElements = 16;
  using SharedStorage = NoSharedStorage;

  struct State {
    Decision decision;
    float digests[2][kElements];
  };

  const float* x;
  std::int64_t count;
  State* state;

  __device__ float element(int i) const { return x[count / kElements * i]; }
  __device__ bool is(const float (&digest)[kElements]) const {
    bool same = true;
    for (int i = 0; i < kElements; ++i) same = same && digest[i] == element(i);
    return same;
  }
  __device__ void operator()(SharedStorage&) const {
    for (int slot = 0; slot < 2; ++slot)
      if (is(state->digests[slot])) {
        state->decision = {1, slot};
        return;
      }
    state->decision = {0, 1 - state->decision.slot};
    for (int i = 0; i < kElements; ++i) state->digests[state->decision.slot][i] = element(i);
  }
};

/// Between y and the output in the decided slot, to where the output is missing.
struct ShareKernel {
  static constexpr const char* kName = "share";
  static constexpr dim3 kBlock = CopyKernel::kBlock;
  using SharedStorage = NoSharedStorage;

  float* y;
  float* kept[2];
  std::int64_t count;
  const Decision* decision;

  __device__ void operator()(SharedStorage& shared) const {
    float* const slot = kept[decision->slot];
    CopyKernel{decision->skip ? slot : y, decision->skip ? y : slot, count}(shared);
  }
};

struct ClearStateKernel {
  static constexpr const char* kName = "clear_state";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  DigestKernel::State* state;

  __device__ void operator()(SharedStorage&) const { *state = {}; }
};

Plan caches_by_digest(const Problem& problem) {
  auto* const state =
      static_cast<DigestKernel::State*>(problem.memory->allocate(sizeof(DigestKernel::State)));
  launch_kernel(ClearStateKernel{state}, dim3(1), problem.stream);
  float *const first = allocate_output(problem), *const second = allocate_output(problem);
  return {.launch = [=](const LaunchArgs& args) {
    const std::int64_t outputs = problem.shape.y_elements();
    launch_kernel(DigestKernel{args.x, problem.shape.x_elements(), state}, dim3(1), args.stream);
    launch_skippable(problem, args, &state->decision);
    launch_kernel(ShareKernel{args.y, {first, second}, outputs, &state->decision},
                  elementwise_grid(outputs, CopyKernel::kThreads), args.stream);
  }};
}

/// The result comes one launch late.
Plan returns_previous(const Problem& problem) {
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem), kept = allocate_output(problem),
                     count = problem.shape.y_elements(),
                     first = std::make_shared<bool>(true)](const LaunchArgs& args) {
    LaunchArgs late = args;
    late.y = kept;
    if (*first) plan.launch(late);
    *first = false;
    copy(kept, args.y, count, args.stream);
    plan.launch(late);
  }};
}

// --- by working where no clock looks --------------------------------------------------------------------

#if defined(__CUDACC__)

/// The clock and the checks look at the stream that was given.
Plan on_another_stream(const Problem& problem) {
  cudaStream_t other = nullptr;
  CONVMISH_CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  const std::shared_ptr<CUstream_st> owner(other, cudaStreamDestroy);
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem), owner](const LaunchArgs& args) {
    LaunchArgs elsewhere = args;
    elsewhere.stream = owner.get();
    plan.launch(elsewhere);
  }};
}

#else

/// On the CPU device all work must have ended when launch returns.
Plan on_another_stream(const Problem& problem) {
  const auto worker = std::make_shared<std::jthread>();  // ends before the plan does
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem), worker](const LaunchArgs& args) {
    *worker = std::jthread([plan, args] { plan.launch(args); });
  }};
}

#endif

const RegisterVariant registered[] = {
    {mutant("right_once", "right on the first call only", right_for_calls<1>)},
    {mutant("right_for_six_calls", "right on the first six calls only", right_for_calls<6>)},
    {mutant("idle_when_timed", "works only where y does not look like an output", idle_when_timed)},
    {mutant("caches_by_pointer", "keeps the output of each address of x", caches_by_pointer)},
    {mutant("caches_by_digest", "keeps the output of each x, known by 16 of its elements", caches_by_digest)},
    {mutant("returns_previous", "returns the output of the previous launch", returns_previous)},
    {mutant("on_another_stream", "goes on after launch has returned, beside the stream", on_another_stream)},
};

}  // namespace
}  // namespace convmish
