// Launchers of the kernels that draw inputs, compute the float64 reference and judge outputs.
//
// Each enqueues on `stream` and throws DeviceError when the launch is refused.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "check/accumulator.hpp"
#include "check/fill.hpp"
#include "check/multiplicand.hpp"
#include "check/tensor_view.hpp"

namespace convmish::gpu {

/// float64 reference of a chunk, in the order n k p q: z = sum x w + b, s = sum |x||w| + |b| and, unless
/// null, q = sqrt(sum (x w)^2).
struct ReferenceOut {
  double* z = nullptr;
  double* s = nullptr;
  double* q = nullptr;
};

struct ReferenceIn {
  Shape shape;
  Layout layout = Layout::nchw;
  const float* x = nullptr;
  const float* filter = nullptr;
  const float* bias = nullptr;
  AcceptanceRule rule;  // says which multiplicands overflow in the class; s is NaN where one takes part
  Multiplicands multiplicands = Multiplicands::exact;
};

/// What the comparison of one chunk adds to: one accumulator a block, and a histogram of ratios.
struct CompareOut {
  ErrorAccumulator* partials = nullptr;  // kCompareBlocks of them
  unsigned long long* ratios = nullptr;  // kRatioBins
};
inline constexpr int kCompareBlocks = 1024;

/// Counters of wrong outputs by each coordinate: shape.n, k, p() and q() of them, in the device's memory.
struct WrongCounters {
  unsigned long long *n = nullptr, *k = nullptr, *p = nullptr, *q = nullptr;
  unsigned long long* poisoned = nullptr;  // one: those of the bits `poison`
  std::uint32_t poison = 0;
};

void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination, cudaStream_t stream);
void fill_words(std::uint32_t* destination, std::size_t words, std::uint32_t word, cudaStream_t stream);
/// Adds the checksum of `words` 32-bit words to *sum.
void add_checksum(const std::uint32_t* data, std::size_t words, unsigned long long* sum, cudaStream_t stream);

void reference(const ReferenceIn& in, const Chunk& chunk, const ReferenceOut& out, cudaStream_t stream);

/// What takes the place of s for a transform, by image, and what it is made of.
struct ImageNorms {
  double* norms = nullptr;          // [n]
  double* x_maxima = nullptr;       // [n][c]
  double* filter_maxima = nullptr;  // [k][c]
};
void image_norms(const ReferenceIn& in, const ImageNorms& out, cudaStream_t stream);

/// `image_norms`, unless null, replaces s by image_norms[n].
void compare(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
             const ReferenceOut& reference, const double* image_norms, const AcceptanceRule& rule,
             const CompareOut& out, cudaStream_t stream);
/// Adds to the counters what the same comparison finds wrong.
void count_wrong(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
                 const ReferenceOut& reference, const double* image_norms, const AcceptanceRule& rule,
                 const WrongCounters& counters, cudaStream_t stream);
/// Fills in y, z and s of those `samples` that lie in the chunk.
void gather(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
            const ReferenceOut& reference, ReferencePoint* samples, int count, cudaStream_t stream);

/// An empty kernel.
void do_nothing(cudaStream_t stream);

/// What the host and a kernel that holds a stream tell each other; in mapped host memory.
struct Gate {
  int open;     // host: the stream may go on
  int expired;  // kernel: it went on without that
};
/// Occupies the stream until the gate is open, at most for `limit_ms`.
void hold(Gate* gate, double limit_ms, cudaStream_t stream);

}  // namespace convmish::gpu
