// The pass should take as long as a copy, so what it computes must hide behind memory: the fewest
// instructions for both Mishes (mish.hpp), 16-byte accesses, and the output channel of an element found
// without a division of its own. Planes need not be multiples of 4 floats: the pass runs over the flat
// tensor, and only the few vectors that straddle two planes look at their elements one by one.

#include <cstdint>

#include "variants/common/activation_pass.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish {
namespace {

template <unsigned kWidth, MishCount kMish>
struct ActivationKernel {
  static constexpr const char* kName = "activation_pass";
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kVectors = 2;  // a thread: two loads in flight before the first is waited for
  static constexpr unsigned kStride = kThreads * kWidth;
  static constexpr unsigned kElements = kVectors * kStride;  // a block
  static constexpr int kMinBlocks = 2048 / kThreads;         // every thread an SM can hold: 64 KB in flight
  static constexpr dim3 kBlock{kThreads};
  using SharedStorage = NoSharedStorage;
  using Vector = FloatVector<kWidth>;

  const float* in;
  const float* bias;
  float* out;
  std::int64_t elements, plane, channels;
  FastDivider by_plane, by_channels;

  static __device__ __forceinline__ float activate(float z) {
    if constexpr (kMish == MishCount::once) {
      return mish(z);
    } else {
      return mish_of_mish(z);
    }
  }

  /// The bias of kWidth elements from `offset` on, counted from the start of the plane of `channel`.
  __device__ __forceinline__ Vector load_bias(std::int64_t channel, std::int64_t offset) const {
    Vector b;
    if (offset + kWidth <= plane) {
      const float same = __ldg(bias + channel);
      CONVMISH_UNROLL
      for (float& lane : b.lane) lane = same;
      return b;
    }
    const auto [planes_on, rest] = by_plane.divide(offset);
    offset = rest;
    channel = by_channels.divide(channel + planes_on).remainder;
    CONVMISH_UNROLL
    for (float& lane : b.lane) {
      lane = __ldg(bias + channel);
      if (++offset == plane) {
        offset = 0;
        if (++channel == channels) channel = 0;
      }
    }
    return b;
  }

  __device__ void operator()(SharedStorage&) const {
    const std::int64_t block_first = std::int64_t{blockIdx.x} * kElements;
    const unsigned thread_first = threadIdx.x * kWidth;

    Vector z[kVectors];
    CONVMISH_UNROLL
    for (unsigned v = 0; v < kVectors; ++v) {
      const std::int64_t first = block_first + thread_first + v * kStride;
      if (first + kWidth <= elements) {
        z[v] = *reinterpret_cast<const Vector*>(in + first);
      } else {  // the tensor's last few
        CONVMISH_UNROLL
        for (unsigned j = 0; j < kWidth; ++j) z[v].lane[j] = first + j < elements ? in[first + j] : 0.0f;
      }
    }

    if (bias != nullptr) {
      const auto [block_plane, block_offset] = by_plane.divide(block_first);
      const std::int64_t block_channel = by_channels.divide(block_plane).remainder;
      CONVMISH_UNROLL
      for (unsigned v = 0; v < kVectors; ++v) {
        const Vector b = load_bias(block_channel, block_offset + thread_first + v * kStride);
        CONVMISH_UNROLL
        for (unsigned j = 0; j < kWidth; ++j) z[v].lane[j] += b.lane[j];
      }
    }

    CONVMISH_UNROLL
    for (unsigned v = 0; v < kVectors; ++v) {
      const std::int64_t first = block_first + thread_first + v * kStride;
      CONVMISH_UNROLL
      for (float& lane : z[v].lane) lane = activate(lane);
      if (first + kWidth <= elements) {
        *reinterpret_cast<Vector*>(out + first) = z[v];
      } else {
        CONVMISH_UNROLL
        for (unsigned j = 0; j < kWidth; ++j)
          if (first + j < elements) out[first + j] = z[v].lane[j];
      }
    }
  }
};

template <unsigned kWidth, MishCount kMish>
void launch(const ActivationPass& pass, Stream stream) {
  using Kernel = ActivationKernel<kWidth, kMish>;
  const std::int64_t elements = pass.shape.y_elements(), plane = pass.shape.p() * pass.shape.q();
  const dim3 grid(static_cast<unsigned>(divide_up(elements, Kernel::kElements)));
  launch_kernel(Kernel{pass.in, pass.bias, pass.out, elements, plane, pass.shape.k, FastDivider(plane),
                       FastDivider(pass.shape.k)},
                grid, stream);
}

bool aligned_to_vector(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

}  // namespace

template <>
void activate<kKernelDevice>(const ActivationPass& pass, Stream stream) {
  const bool vectors = aligned_to_vector(pass.in) && aligned_to_vector(pass.out);
  if (pass.mish == MishCount::once) {
    vectors ? launch<4, MishCount::once>(pass, stream) : launch<1, MishCount::once>(pass, stream);
  } else {
    vectors ? launch<4, MishCount::twice>(pass, stream) : launch<1, MishCount::twice>(pass, stream);
  }
}

}  // namespace convmish
