// The pass should take as long as a copy, so what it computes must hide behind memory: the fewest
// instructions for both Mishes (mish.hpp), 16-byte accesses, and the output channel of an element found
// without a division of its own. Planes need not be multiples of 4 floats: the pass runs over the flat
// tensor, and only the few vectors that straddle two planes look at their elements one by one.

#include <algorithm>
#include <cstdint>

#include "variants/common/activation_pass.hpp"
#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/mish.hpp"

namespace convmish {
namespace {

template <unsigned kWidth, MishCount kMish, ActivationForm kForm>
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
  std::int64_t elements, grid_elements, plane, channels;  // grid_elements: of all blocks at a time
  FastDivider by_plane, by_channels;

  static __device__ __forceinline__ float activate(float z) {
    if constexpr (kMish == MishCount::twice) {
      return activation<kForm.mish>(z);
    } else if constexpr (kForm.mish == MishForm::definition) {
      return mish_by_definition(z);
    } else {
      return mish(z);
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
    std::int64_t block_first = std::int64_t{blockIdx.x} * kElements;
    if constexpr (kForm.grid == GridForm::exact) {
      activate_part(block_first);
    } else {
      for (; block_first < elements; block_first += grid_elements) activate_part(block_first);
    }
  }

  /// kElements elements, those that there are.
  __device__ __forceinline__ void activate_part(std::int64_t block_first) const {
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

/// As many blocks as the device holds at a time.
template <class Kernel>
std::int64_t resident_blocks() {
#if defined(__CUDACC__)
  int device = 0, multiprocessors = 0;
  CONVMISH_CHECK_CUDA(cudaGetDevice(&device));
  CONVMISH_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return std::int64_t{multiprocessors} * Kernel::kMinBlocks;
#else
  return 1;
#endif
}

template <unsigned kWidth, MishCount kMish, ActivationForm kForm>
void launch(const ActivationPass& pass, Stream stream) {
  using Kernel = ActivationKernel<kWidth, kMish, kForm>;
  const std::int64_t elements = pass.shape.y_elements(), plane = pass.shape.p() * pass.shape.q();
  std::int64_t blocks = divide_up(elements, Kernel::kElements);
  if constexpr (kForm.grid == GridForm::grid_stride) blocks = std::min(blocks, resident_blocks<Kernel>());
  launch_kernel(Kernel{pass.in, pass.bias, pass.out, elements, blocks * Kernel::kElements, plane,
                       pass.shape.k, FastDivider(plane), FastDivider(pass.shape.k)},
                dim3(static_cast<unsigned>(blocks)), stream);
}

template <unsigned kWidth>
bool aligned_to_vector(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(FloatVector<kWidth>) == 0;
}

template <MishCount kMish, ActivationForm kForm>
void launch_aligned(const ActivationPass& pass, Stream stream) {
  const bool vectors = aligned_to_vector<kForm.width>(pass.in) && aligned_to_vector<kForm.width>(pass.out);
  vectors ? launch<kForm.width, kMish, kForm>(pass, stream) : launch<1, kMish, kForm>(pass, stream);
}

}  // namespace

template <DeviceKind kDevice, ActivationForm kForm>
void activate(const ActivationPass& pass, Stream stream) {
  static_assert(kDevice == kKernelDevice && kForm.arithmetic == kKernelArithmetic);
  if (pass.mish == MishCount::once) {
    launch_aligned<MishCount::once, kForm>(pass, stream);
  } else {
    launch_aligned<MishCount::twice, kForm>(pass, stream);
  }
}

#define CONVMISH_ACTIVATION_FORM(...)                                                            \
  template void activate<kKernelDevice, ActivationForm{__VA_ARGS__}>(const ActivationPass& pass, \
                                                                     Stream stream)
#if defined(CONVMISH_FAST_MATH)
CONVMISH_ACTIVATION_FORM(.arithmetic = Arithmetic::fast);
CONVMISH_ACTIVATION_FORM(.mish = MishForm::definition, .arithmetic = Arithmetic::fast);
#else
CONVMISH_ACTIVATION_FORM();
CONVMISH_ACTIVATION_FORM(.width = 1);
CONVMISH_ACTIVATION_FORM(.mish = MishForm::definition);
CONVMISH_ACTIVATION_FORM(.grid = GridForm::grid_stride);
#endif

}  // namespace convmish
