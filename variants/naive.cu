// One thread an output; every operand is read straight from global memory.
//
// The yardstick: no tiling and no reuse but what the caches give, so that every later variant is told as a
// difference from this one. Two loads a multiply-add, of which the L1 cache's throughput is the limit.

#include <memory>

#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish {
namespace {

struct NaiveKernel {
  static constexpr const char* kName = "naive";
  static constexpr unsigned kThreads = 256;
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;

  Shape shape;
  FastDivider by_q, by_p, by_k;
  const float* x;
  const float* filter;
  const float* bias;
  float* y;

  __device__ void operator()(SharedStorage&) const {
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= shape.y_elements()) return;

    // Unflatten n k p q, innermost first. Neighbouring threads differ in q, so that loads of x coalesce and
    // those of the filter are one address for nearly every warp.
    const auto [row, q] = by_q.divide(i);
    const auto [plane, p] = by_p.divide(row);
    const auto [n, k] = by_k.divide(plane);

    const std::int64_t x_plane = shape.h * shape.w;
    const float* window = x + n * shape.c * x_plane + p * shape.w + q;
    const float* taps = filter + k * shape.reduction();
    float z = __ldg(bias + k);
    for (std::int64_t c = 0; c < shape.c; ++c) {
      CONVMISH_UNROLL
      for (int r = 0; r < kFilterSize; ++r) {
        CONVMISH_UNROLL
        for (int s = 0; s < kFilterSize; ++s)
          z += __ldg(window + r * shape.w + s) * __ldg(taps + r * kFilterSize + s);
      }
      window += x_plane;
      taps += kTaps;
    }
    y[i] = mish_of_mish(z);
  }
};

Plan prepare(const Problem& problem) {
  const Shape shape = problem.shape;
  const dim3 grid(static_cast<unsigned>(divide_up(shape.y_elements(), NaiveKernel::kThreads)));
  const auto launch = [=, filter = problem.filter, bias = problem.bias](const LaunchArgs& args) {
    launch_kernel(NaiveKernel{shape, FastDivider(shape.q()), FastDivider(shape.p()), FastDivider(shape.k),
                              args.x, filter, bias, args.y},
                  grid, args.stream);
  };
  return {.launch = launch, .geometry = launch_geometry<NaiveKernel>(grid)};
}

const RegisterVariant registered{{
    .name = "naive",
    .summary = "one thread an output, every operand from global memory",
    .device = kKernelDevice,
    .math = MathClass::fp32,
    .pipe = Pipe::ffma,
    .emulated = kKernelEmulated,
    .prepare = prepare,
}};

}  // namespace
}  // namespace convmish
