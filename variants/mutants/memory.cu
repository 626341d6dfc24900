// Mutants that compute the right thing, but write where they must not, or read before it is written.

#include <cstdint>

#include "variants/mutants/mistaken_kernel.hpp"

namespace convmish {
namespace {

struct StoreKernel {
  static constexpr const char* kName = "store";
  static constexpr dim3 kBlock{1};
  using SharedStorage = NoSharedStorage;

  float* at;

  __device__ void operator()(SharedStorage&) const { *at = 0.5f; }
};

/// The right result, then one store to the address that `pick` chooses.
template <class Pick>
Plan with_stray_store(const Problem& problem, Pick pick) {
  return {.launch = [plan = prepare_mistaken<NoMistake>(problem), pick](const LaunchArgs& args) {
    plan.launch(args);
    launch_kernel(StoreKernel{pick(args)}, dim3(1), args.stream);
  }};
}

Plan store_past_end(const Problem& problem) {
  const std::int64_t end = problem.shape.y_elements();
  return with_stray_store(problem, [end](const LaunchArgs& args) { return args.y + end; });
}
Plan store_before_start(const Problem& problem) {
  return with_stray_store(problem, [](const LaunchArgs& args) { return args.y - 1; });
}
Plan store_to_x(const Problem& problem) {
  return with_stray_store(problem, [](const LaunchArgs& args) { return const_cast<float*>(args.x); });
}
Plan store_to_filter(const Problem& problem) {
  return with_stray_store(
      problem, [filter = problem.filter](const LaunchArgs&) { return const_cast<float*>(filter); });
}
Plan store_past_workspace(const Problem& problem) {
  constexpr std::int64_t kFloats = 1000;
  Plan plan = with_stray_store(
      problem, [](const LaunchArgs& args) { return static_cast<float*>(args.workspace) + kFloats; });
  plan.workspace_bytes = kFloats * sizeof(float);
  return plan;
}

/// Two threads an output, a half of the channels each; the second hands its sum over in shared memory, but
/// the first does not wait for it. A race: on a GPU the result differs from run to run.
struct MissingBarrierKernel {
  static constexpr const char* kName = "missing_barrier";
  static constexpr unsigned kOutputs = 128;
  static constexpr dim3 kBlock{2 * kOutputs};
  struct SharedStorage {
    float second_half[kOutputs];
  };

  Shape shape;
  FastDivider by_q, by_p, by_k;
  const float* x;
  const float* filter;
  const float* bias;
  float* y;

  __device__ void operator()(SharedStorage& shared) const {
    const unsigned slot = threadIdx.x % kOutputs;
    const std::int64_t i = std::int64_t{blockIdx.x} * kOutputs + slot;
    if (i >= shape.y_elements()) return;
    const auto [row, q] = by_q.divide(i);
    const auto [plane, p] = by_p.divide(row);
    const auto [n, k] = by_k.divide(plane);

    const bool second = threadIdx.x >= kOutputs;
    const std::int64_t middle = shape.c / 2;
    float sum = 0.0f;
    for (std::int64_t c = second ? middle : 0; c < (second ? shape.c : middle); ++c)
      for (int tap = 0; tap < kTaps; ++tap)
        sum += x[((n * shape.c + c) * shape.h + p + tap / kFilterSize) * shape.w + q + tap % kFilterSize] *
               filter[(k * shape.c + c) * kTaps + tap];
    if (second) shared.second_half[slot] = sum;
    // __syncthreads() belongs here.
    if (!second) y[i] = mish_of_mish(sum + shared.second_half[slot] + bias[k]);
  }
};

Plan missing_barrier(const Problem& problem) {
  return {.launch = [problem](const LaunchArgs& args) {
    const Shape& shape = problem.shape;
    launch_kernel(MissingBarrierKernel{shape, FastDivider(shape.q()), FastDivider(shape.p()),
                                       FastDivider(shape.k), args.x, problem.filter, problem.bias, args.y},
                  elementwise_grid(shape.y_elements(), MissingBarrierKernel::kOutputs), args.stream);
  }};
}

const RegisterVariant registered[] = {
    {mutant("store_past_end", "writes one element past the end of y", store_past_end)},
    {mutant("store_before_start", "writes one element before y", store_before_start)},
    {mutant("store_to_x", "writes to x", store_to_x)},
    {mutant("store_to_filter", "writes to the filter", store_to_filter)},
    {mutant("store_past_workspace", "writes one element past its workspace", store_past_workspace)},
    {mutant("missing_barrier", "reads shared memory that another thread may not have written",
            missing_barrier)},
};

}  // namespace
}  // namespace convmish
