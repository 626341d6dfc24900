#include "check/checksum.hpp"
#include "gpu/check.hpp"
#include "gpu/check_kernels.hpp"
#include "gpu/stopwatch.hpp"

namespace convmish::gpu {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;

unsigned blocks_for(std::int64_t items, std::int64_t most = 1 << 20) {
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

__device__ std::int64_t first_item() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}
__device__ std::int64_t item_step() {
  return std::int64_t{gridDim.x} * kThreads;
}

void check_launch(const char* kernel) {
  check_cuda(cudaGetLastError(), kernel);
}

// --- inputs -------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kThreads)
    draw_kernel(FillSpec spec, Tensor tensor, TensorDims dims, Strides to, float* destination) {
  for (std::int64_t i = first_item(); i < dims.count(); i += item_step())
    destination[dims.offset(to, i)] = draw(spec, tensor, i);
}

__global__ void __launch_bounds__(kThreads)
    fill_words_kernel(std::uint32_t* destination, std::int64_t words, std::uint32_t word) {
  for (std::int64_t i = first_item(); i < words; i += item_step()) destination[i] = word;
}

__global__ void __launch_bounds__(kThreads)
    checksum_kernel(const std::uint32_t* data, std::int64_t words, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (std::int64_t i = first_item(); i < words; i += item_step()) mine += checksum_term(i, data[i]);
  for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_down_sync(0xffffffffu, mine, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

// --- reference ----------------------------------------------------------------------------------------

// A block computes kTileK output channels x kTileRows x kTileColumns outputs of one image; a thread 4
// channels x 4 neighbouring columns. Operands are widened to float64 once, on their way to shared memory.
constexpr int kTileK = 16, kTileRows = 8, kTileColumns = 32, kTileC = 4;
constexpr int kPerThread = 4;
constexpr int kHaloRows = kTileRows + 2, kHaloColumns = kTileColumns + 2;
static_assert(kTileK / kPerThread * kTileRows * kTileColumns / kPerThread == kThreads);

template <bool kWithQ, bool kRounds>
__global__ void __launch_bounds__(kThreads)
    reference_kernel(ReferenceIn in, Chunk chunk, ReferenceOut out, int tiles_k, int tiles_p, int tiles_q) {
  __shared__ double tile_x[kTileC][kHaloRows][kHaloColumns];
  __shared__ double tile_w[kTileC][kTaps][kTileK];
  const Shape& shape = in.shape;
  const Strides xs = x_strides(in.layout, shape), ws = filter_strides(in.layout, shape);

  // Tile coordinates, columns fastest so that neighbours share halo rows in the cache.
  std::int64_t tile = blockIdx.x;
  const std::int64_t q0 = tile % tiles_q * kTileColumns;
  tile /= tiles_q;
  const std::int64_t p0 = chunk.p0 + tile % tiles_p * kTileRows;
  tile /= tiles_p;
  const std::int64_t k0 = chunk.k0 + tile % tiles_k * kTileK;
  const std::int64_t n = chunk.n0 + tile / tiles_k;

  const int column = threadIdx.x % (kTileColumns / kPerThread) * kPerThread;
  const int row = threadIdx.x / (kTileColumns / kPerThread) % kTileRows;
  const int channel = threadIdx.x / (kTileColumns / kPerThread * kTileRows) * kPerThread;

  const auto multiplicand = [&in](float value) {
    return double{kRounds ? round_multiplicand(in.multiplicands, value) : value};
  };
  double z[kPerThread][kPerThread] = {}, s[kPerThread][kPerThread] = {}, squares[kPerThread][kPerThread] = {};
  for (std::int64_t c0 = 0; c0 < shape.c; c0 += kTileC) {
    bool overflow = false;
    __syncthreads();
    for (int i = threadIdx.x; i < kTileC * kHaloRows * kHaloColumns; i += kThreads) {
      const int c = i / (kHaloRows * kHaloColumns), r = i / kHaloColumns % kHaloRows, col = i % kHaloColumns;
      const bool inside = c0 + c < shape.c && p0 + r < shape.h && q0 + col < shape.w;
      const double value = inside ? multiplicand(in.x[xs.offset(n, c0 + c, p0 + r, q0 + col)]) : 0.0;
      overflow |= in.rule.overflows(value);
      tile_x[c][r][col] = value;
    }
    for (int i = threadIdx.x; i < kTileC * kTaps * kTileK; i += kThreads) {
      const int c = i / (kTaps * kTileK), tap = i / kTileK % kTaps, k = i % kTileK;
      const bool inside = c0 + c < shape.c && k0 + k < shape.k;
      const double value =
          inside ? multiplicand(in.filter[ws.offset(k0 + k, c0 + c, tap / kFilterSize, tap % kFilterSize)])
                 : 0.0;
      overflow |= in.rule.overflows(value);
      tile_w[c][tap][k] = value;
    }
    const bool any_overflow = __syncthreads_or(overflow);
    // Channels past the last would add 0 * 0 only: but stop there, they cost as much as real ones.
    const int channels = shape.c - c0 < kTileC ? static_cast<int>(shape.c - c0) : kTileC;
    for (int c = 0; c < channels; ++c)
#pragma unroll
      for (int r = 0; r < kFilterSize; ++r) {
        double xv[kPerThread + 2];
#pragma unroll
        for (int j = 0; j < kPerThread + 2; ++j) xv[j] = tile_x[c][row + r][column + j];
#pragma unroll
        for (int t = 0; t < kFilterSize; ++t)
#pragma unroll
          for (int a = 0; a < kPerThread; ++a) {
            const double w = tile_w[c][r * kFilterSize + t][channel + a];
#pragma unroll
            for (int b = 0; b < kPerThread; ++b) {
              const double product = xv[b + t] * w;  // exact: 24 + 24 bits
              z[a][b] += product;
              s[a][b] += fabs(product);
              if constexpr (kWithQ) squares[a][b] = fma(product, product, squares[a][b]);
              if (any_overflow && (in.rule.overflows(xv[b + t]) || in.rule.overflows(w))) s[a][b] = NAN;
            }
          }
      }
  }

  for (int a = 0; a < kPerThread; ++a)
    for (int b = 0; b < kPerThread; ++b) {
      const std::int64_t k = k0 + channel + a, p = p0 + row, q = q0 + column + b;
      if (k >= chunk.k1 || p >= chunk.p1 || q >= chunk.q) continue;
      const std::int64_t i = chunk.index(n, k, p, q);
      const double bias = in.bias[k];
      out.z[i] = z[a][b] + bias;
      out.s[i] = s[a][b] + fabs(bias);
      if constexpr (kWithQ) out.q[i] = sqrt(squares[a][b]);
    }
}

// --- comparison ---------------------------------------------------------------------------------------

// Doubles >= 0 order as their bit patterns do; a NaN's pattern is the largest, so it is kept.
__device__ unsigned long long order_of(double magnitude) {
  return static_cast<unsigned long long>(__double_as_longlong(fabs(magnitude)));
}
__device__ void raise(double* most, double magnitude) {
  atomicMax(reinterpret_cast<unsigned long long*>(most), order_of(magnitude));
}

// A warp a plane.
__global__ void __launch_bounds__(kThreads)
    plane_maxima_kernel(const float* values, TensorDims dims, Strides from, AcceptanceRule rule,
                        double* maxima) {
  const std::int64_t plane = first_item() / 32, elements = dims.rows * dims.columns;
  if (plane >= dims.outer * dims.channels) return;
  unsigned long long most = 0;
  for (std::int64_t i = threadIdx.x % 32; i < elements; i += 32)
    most = max(most, order_of(double{values[dims.offset(from, plane * elements + i)]}));
  for (int lane = 16; lane > 0; lane /= 2) most = max(most, __shfl_down_sync(0xffffffffu, most, lane));
  if (threadIdx.x % 32 > 0) return;
  const double value = __longlong_as_double(static_cast<long long>(most));
  maxima[plane] = rule.overflows(value) ? NAN : value;
}

// A warp an image and an output channel.
__global__ void __launch_bounds__(kThreads)
    image_norms_kernel(Shape shape, const double* x, const double* filter, const float* bias, double* norms) {
  const std::int64_t warp = first_item() / 32, n = warp / shape.k, k = warp % shape.k;
  if (n >= shape.n) return;
  double norm = 0;
  for (std::int64_t c = threadIdx.x % 32; c < shape.c; c += 32)
    norm += x[n * shape.c + c] * filter[k * shape.c + c];
  for (int lane = 16; lane > 0; lane /= 2) norm += __shfl_down_sync(0xffffffffu, norm, lane);
  if (threadIdx.x % 32 == 0) raise(&norms[n], norm + fabs(double{bias[k]}));
}

__device__ ReferencePoint point_at(const Shape& shape, const Strides& ys, const float* y, const Chunk& chunk,
                                   const ReferenceOut& reference, const Chunk::At& at) {
  const std::int64_t i = chunk.index(at.n, at.k, at.p, at.q);
  const std::int64_t flat = ((at.n * shape.k + at.k) * shape.p() + at.p) * shape.q() + at.q;
  return {flat, y[ys.offset(at.n, at.k, at.p, at.q)], reference.z[i], reference.s[i]};
}

__global__ void __launch_bounds__(kThreads)
    compare_kernel(Shape shape, Strides ys, const float* y, Chunk chunk, ReferenceOut reference,
                   const double* image_norms, AcceptanceRule rule, CompareOut out) {
  __shared__ unsigned ratios[kRatioBins];
  __shared__ ErrorAccumulator warps[kThreads / 32];
  for (int i = threadIdx.x; i < kRatioBins; i += kThreads) ratios[i] = 0;
  __syncthreads();

  ErrorAccumulator mine;
  for (std::int64_t i = first_item(); i < chunk.outputs(); i += item_step()) {
    const Chunk::At at = chunk.at(i);
    ReferencePoint point = point_at(shape, ys, y, chunk, reference, at);
    if (image_norms) point.s = image_norms[at.n];
    atomicAdd(&ratios[ratio_bin(mine.add(point, reference.q ? reference.q[i] : 0.0, rule))], 1u);
  }

  // Lanes, one after another into the warp's accumulator; then warps into the block's.
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) warps[warp] = mine;
  for (int lane = 1; lane < 32; ++lane) {
    __syncwarp();
    if (threadIdx.x % 32 == lane) warps[warp].merge(mine);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int other = 1; other < kThreads / 32; ++other) warps[0].merge(warps[other]);
    out.partials[blockIdx.x].merge(warps[0]);
  }
  for (int i = threadIdx.x; i < kRatioBins; i += kThreads)
    if (ratios[i]) atomicAdd(&out.ratios[i], static_cast<unsigned long long>(ratios[i]));
}

// Most often a warp's outputs share n, k and p: one lane then adds for all.
__global__ void __launch_bounds__(kThreads)
    count_wrong_kernel(Shape shape, Strides ys, const float* y, Chunk chunk, ReferenceOut reference,
                       const double* image_norms, AcceptanceRule rule, WrongCounters counters) {
  constexpr unsigned kAllLanes = 0xffffffffu;
  const std::int64_t outputs = chunk.outputs(), lane = threadIdx.x % 32;
  for (std::int64_t first = first_item() - lane; first < outputs; first += item_step()) {
    const bool inside = first + lane < outputs;
    const Chunk::At at = chunk.at(inside ? first + lane : first);
    ReferencePoint point = point_at(shape, ys, y, chunk, reference, at);
    if (image_norms) point.s = image_norms[at.n];
    const bool wrong = inside && !judge(double{point.y}, point.z, point.s, rule).right;
    const bool poisoned = wrong && __float_as_uint(point.y) == counters.poison;
    const unsigned wrong_lanes = __ballot_sync(kAllLanes, wrong);
    if (!wrong_lanes) continue;
    const unsigned poisoned_lanes = __ballot_sync(kAllLanes, poisoned);
    const std::int64_t row = point.index / shape.q();
    const bool one_row = __all_sync(kAllLanes, row == __shfl_sync(kAllLanes, row, 0));
    if (lane == 0 && poisoned_lanes) atomicAdd(counters.poisoned, __popc(poisoned_lanes) + 0ull);
    const unsigned long long count = one_row ? __popc(wrong_lanes) : wrong;
    if (count && (lane == 0 || !one_row)) {
      atomicAdd(&counters.n[at.n], count);
      atomicAdd(&counters.k[at.k], count);
      atomicAdd(&counters.p[at.p], count);
    }
    if (wrong) atomicAdd(&counters.q[at.q], 1ull);
  }
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(Shape shape, Strides ys, const float* y, Chunk chunk, ReferenceOut reference,
                  ReferencePoint* samples, int count) {
  const Chunk whole{0, shape.n, 0, shape.k, 0, shape.p(), shape.q()};
  for (std::int64_t i = first_item(); i < count; i += item_step()) {
    const Chunk::At at = whole.at(samples[i].index);
    const bool inside = at.n >= chunk.n0 && at.n < chunk.n1 && at.k >= chunk.k0 && at.k < chunk.k1 &&
                        at.p >= chunk.p0 && at.p < chunk.p1;
    if (inside) samples[i] = point_at(shape, ys, y, chunk, reference, at);
  }
}

__global__ void spin_kernel(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

__global__ void empty_kernel() {}

__global__ void hold_kernel(volatile Gate* gate, long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    if (gate->open) return;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  gate->expired = 1;
}

}  // namespace

void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination,
                 cudaStream_t stream) {
  const TensorDims dims = tensor_dims(spec.shape, tensor);
  draw_kernel<<<blocks_for(dims.count()), kThreads, 0, stream>>>(
      spec, tensor, dims, strides(layout, dims.channels, dims.rows, dims.columns), destination);
  check_launch("draw_kernel");
}

void fill_words(std::uint32_t* destination, std::size_t words, std::uint32_t word, cudaStream_t stream) {
  const auto count = static_cast<std::int64_t>(words);
  fill_words_kernel<<<blocks_for(count), kThreads, 0, stream>>>(destination, count, word);
  check_launch("fill_words_kernel");
}

void add_checksum(const std::uint32_t* data, std::size_t words, unsigned long long* sum,
                  cudaStream_t stream) {
  const auto count = static_cast<std::int64_t>(words);
  checksum_kernel<<<blocks_for(count, 4096), kThreads, 0, stream>>>(data, count, sum);
  check_launch("checksum_kernel");
}

void reference(const ReferenceIn& in, const Chunk& chunk, const ReferenceOut& out, cudaStream_t stream) {
  const auto tiles = [](std::int64_t extent, int tile) {
    return static_cast<int>((extent + tile - 1) / tile);
  };
  const int tiles_k = tiles(chunk.k1 - chunk.k0, kTileK), tiles_p = tiles(chunk.p1 - chunk.p0, kTileRows),
            tiles_q = tiles(chunk.q, kTileColumns);
  const std::int64_t blocks = (chunk.n1 - chunk.n0) * tiles_k * std::int64_t{tiles_p} * tiles_q;
  const bool rounds = in.multiplicands != Multiplicands::exact;
  const auto kernel = out.q ? (rounds ? reference_kernel<true, true> : reference_kernel<true, false>)
                            : (rounds ? reference_kernel<false, true> : reference_kernel<false, false>);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(in, chunk, out, tiles_k, tiles_p, tiles_q);
  check_launch("reference_kernel");
}

void image_norms(const ReferenceIn& in, const ImageNorms& out, cudaStream_t stream) {
  const auto maxima = [&](const float* values, Tensor tensor, double* to) {
    const TensorDims dims = tensor_dims(in.shape, tensor);
    plane_maxima_kernel<<<blocks_for(32 * dims.outer * dims.channels, kMaxGrid), kThreads, 0, stream>>>(
        values, dims, strides(in.layout, dims.channels, dims.rows, dims.columns), in.rule, to);
    check_launch("plane_maxima_kernel");
  };
  maxima(in.x, Tensor::x, out.x_maxima);
  maxima(in.filter, Tensor::filter, out.filter_maxima);
  check_cuda(cudaMemsetAsync(out.norms, 0, static_cast<std::size_t>(in.shape.n) * sizeof(double), stream),
             "cudaMemsetAsync");
  image_norms_kernel<<<blocks_for(32 * in.shape.n * in.shape.k, kMaxGrid), kThreads, 0, stream>>>(
      in.shape, out.x_maxima, out.filter_maxima, in.bias, out.norms);
  check_launch("image_norms_kernel");
}

void compare(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
             const ReferenceOut& reference, const double* image_norms, const AcceptanceRule& rule,
             const CompareOut& out, cudaStream_t stream) {
  compare_kernel<<<kCompareBlocks, kThreads, 0, stream>>>(shape, y_strides(layout, shape), y, chunk,
                                                          reference, image_norms, rule, out);
  check_launch("compare_kernel");
}

void count_wrong(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
                 const ReferenceOut& reference, const double* image_norms, const AcceptanceRule& rule,
                 const WrongCounters& counters, cudaStream_t stream) {
  count_wrong_kernel<<<blocks_for(chunk.outputs(), 4096), kThreads, 0, stream>>>(
      shape, y_strides(layout, shape), y, chunk, reference, image_norms, rule, counters);
  check_launch("count_wrong_kernel");
}

void gather(const Shape& shape, Layout layout, const float* y, const Chunk& chunk,
            const ReferenceOut& reference, ReferencePoint* samples, int count, cudaStream_t stream) {
  if (count == 0) return;
  gather_kernel<<<blocks_for(count), kThreads, 0, stream>>>(shape, y_strides(layout, shape), y, chunk,
                                                            reference, samples, count);
  check_launch("gather_kernel");
}

void spin(double microseconds, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(static_cast<long long>(1e3 * microseconds));
  check_launch("spin_kernel");
}

void do_nothing(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  check_launch("empty_kernel");
}

void hold(Gate* gate, double limit_ms, cudaStream_t stream) {
  hold_kernel<<<1, 1, 0, stream>>>(gate, static_cast<long long>(1e6 * limit_ms));
  check_launch("hold_kernel");
}

}  // namespace convmish::gpu
