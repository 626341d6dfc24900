// core's Device on a CUDA GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/summary.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/library_versions.hpp"
#include "gpu/allocation.hpp"
#include "gpu/ceilings.hpp"
#include "gpu/check.hpp"
#include "gpu/check_kernels.hpp"
#include "gpu/nvml.hpp"
#include "gpu/stopwatch.hpp"
#include "gpu/unusable.hpp"
#include "gpu/version_text.hpp"

namespace convmish {
namespace {

/// Outputs whose reference is held at once: z, s and q in float64 are 24 bytes each, 403 MB in all.
constexpr std::int64_t kChunkOutputs = std::int64_t{1} << 24;
constexpr std::int64_t kScratchBytes = 24 * kChunkOutputs;

constexpr std::size_t kGuardBytes =
    65536;  // on either side of a buffer; a multiple of every alignment asked for
constexpr std::uint32_t kGuardWord = 0xC0DEFACEu;

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(std::size_t bytes, cudaStream_t stream)
      : bytes_(bytes), padded_((bytes + 3) / 4 * 4), memory_(padded_ + 2 * kGuardBytes), stream_(stream) {
    CudaBuffer::lay_guards();
  }

  void* data() override { return before() + kGuardBytes; }
  std::size_t bytes() const override { return bytes_; }

  Damage damage() override {
    std::vector<std::uint32_t> zone(kGuardBytes / 4);
    for (const auto& [from, damage] : {std::pair{before(), Damage::before}, {after(), Damage::after}}) {
      CONVMISH_CHECK_CUDA(cudaMemcpyAsync(zone.data(), from, kGuardBytes, cudaMemcpyDeviceToHost, stream_));
      CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream_));
      if (std::any_of(zone.begin(), zone.end(), [](auto word) { return word != kGuardWord; })) return damage;
    }
    return Damage::none;
  }

  void lay_guards() override {
    for (std::byte* zone : {before(), after()})
      gpu::fill_words(reinterpret_cast<std::uint32_t*>(zone), kGuardBytes / 4, kGuardWord, stream_);
  }

 private:
  std::byte* before() { return static_cast<std::byte*>(memory_.data()); }
  std::byte* after() { return before() + kGuardBytes + padded_; }

  std::size_t bytes_, padded_;
  Allocation memory_;
  cudaStream_t stream_;
};

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  CONVMISH_CHECK_CUDA(cudaDeviceGetAttribute(&value, which, index));
  return value;
}

std::string format_uuid(const cudaUUID_t& uuid) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

/// "0000:1b:00.0": what NVML knows the GPU by, whatever CUDA_VISIBLE_DEVICES makes of its index.
std::string pci_address(int index) {
  std::array<char, 32> text{};
  CONVMISH_CHECK_CUDA(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index));
  return text.data();
}

DeviceInfo read_info(int index) {
  cudaDeviceProp properties{};
  CONVMISH_CHECK_CUDA(cudaGetDeviceProperties(&properties, index));
  return {.kind = DeviceKind::cuda,
          .index = index,
          .name = properties.name,
          .uuid = format_uuid(properties.uuid),
          .compute_major = properties.major,
          .compute_minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .max_threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .l2_bytes = properties.l2CacheSize,
          .max_shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index)};
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : info_(read_info(index)) {
    // Non-blocking: work that a variant puts on the legacy default stream is not ordered behind ours, so
    // that it can be seen to escape.
    CONVMISH_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    stopwatch_.emplace(stream_);
    nvml_ = Nvml::open(pci_address(index));
    gpu::spin(1, stream_);  // fails where the binary has no code for this GPU
    synchronize();
  }
  ~CudaDevice() override {
    stopwatch_.reset();
    cudaStreamDestroy(stream_);
  }

  const DeviceInfo& info() const override { return info_; }

  void describe(Environment& environment) const override {
    int driver = 0, runtime = 0;
    CONVMISH_CHECK_CUDA(cudaDriverGetVersion(&driver));
    CONVMISH_CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
    environment.device = info_;
    const std::string version = nvml_ ? nvml_->driver_version() : std::string();
    environment.driver = (version.empty() ? "" : version + ", ") + "CUDA " + version_text(driver);
    environment.cuda_runtime = version_text(runtime);
    environment.cudnn = library_version("cudnn");
    environment.cuda_compiler = "nvcc " CONVMISH_NVCC_VERSION;
  }

  std::int64_t free_bytes() override {
    std::size_t available = 0, total = 0;
    CONVMISH_CHECK_CUDA(cudaMemGetInfo(&available, &total));
    // The comparison's scratch comes last and must still fit.
    return static_cast<std::int64_t>(available) - (scratch_ ? 0 : kScratchBytes);
  }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    const auto needed = static_cast<std::int64_t>(bytes + 2 * kGuardBytes);
    if (const std::int64_t available = free_bytes(); needed > available) throw OutOfMemory(needed, available);
    return std::make_unique<CudaBuffer>(bytes, stream_);
  }

  void download(void* host, const void* device, std::size_t bytes) override {
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
    synchronize();
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
    synchronize();
  }

  void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination) override {
    gpu::draw_tensor(spec, tensor, layout, destination, stream_);
  }
  void fill_words(void* destination, std::size_t bytes, std::uint32_t word) override {
    gpu::fill_words(static_cast<std::uint32_t*>(destination), bytes / 4, word, stream_);
  }
  std::uint64_t checksum(const void* data, std::size_t bytes) override {
    const Allocation sum(sizeof(unsigned long long));
    auto* device_sum = static_cast<unsigned long long*>(sum.data());
    CONVMISH_CHECK_CUDA(cudaMemsetAsync(device_sum, 0, sizeof *device_sum, stream_));
    gpu::add_checksum(static_cast<const std::uint32_t*>(data), bytes / 4, device_sum, stream_);
    unsigned long long result = 0;
    download(&result, device_sum, sizeof result);
    return result;
  }

  ErrorSummary compare(const Comparison& comparison, std::span<ReferencePoint> samples) override;
  WrongCounts count_wrong(const Comparison& comparison, std::uint32_t poison) override;

  Stream stream() override { return stream_; }
  void synchronize() override { CONVMISH_CHECK_CUDA(cudaStreamSynchronize(stream_)); }

  MeasuredCeilings measure_ceilings() override { return gpu::measure_ceilings(info_, stream_); }
  std::string ceilings_gap_of_build() const override { return gpu::ceilings_gap_of_build(info_); }

  Ordering watch_launch(const std::function<void()>& launch, const void* y, std::size_t bytes,
                        double launch_ms) override;

  void launch_nothing() override { gpu::do_nothing(stream_); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }

  TimedLaunch time_launch(const std::function<void()>& launch, Cache cache, double lead_us) override {
    if (cache == Cache::cold) {
      const auto bytes = static_cast<std::size_t>(2 * info_.l2_bytes);
      if (!flush_) flush_.emplace(bytes);
      CONVMISH_CHECK_CUDA(cudaMemsetAsync(flush_->data(), 0, bytes, stream_));
    }
    // The device cannot have begun to spin before this moment, and has the start, the launch and the stop in
    // its queue when it ends: then no gap of the host's is timed.
    const auto enqueue = std::chrono::steady_clock::now();
    gpu::spin(lead_us, stream_);
    stopwatch_->start();
    launch();
    stopwatch_->stop();
    const auto enqueued = std::chrono::steady_clock::now();
    return {.ms = stopwatch_->elapsed_ms(),
            .enqueue_us = std::chrono::duration<double, std::micro>(enqueued - enqueue).count()};
  }

  std::optional<ClockState> clock_state(std::chrono::milliseconds oldest) override {
    if (!nvml_) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (!clocks_ || now - clocks_read_ >= oldest) {
      clocks_ = nvml_->clock_state();
      clocks_read_ = now;
    }
    return clocks_;
  }

 private:
  template <class Visit>
  void for_each_reference(const Comparison& comparison, Visit visit);

  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
  std::optional<Stopwatch> stopwatch_;
  std::unique_ptr<Nvml> nvml_;  // null where there is none
  std::optional<ClockState> clocks_;
  std::chrono::steady_clock::time_point clocks_read_;
  std::optional<Allocation> scratch_, flush_;
};

/// Calls visit(chunk, reference, image_norms) for every chunk of y once its reference is enqueued;
/// image_norms is null unless the plan is a transform, which errs by norm.
template <class Visit>
void CudaDevice::for_each_reference(const Comparison& c, Visit visit) {
  const Shape& shape = c.shape;
  // A row longer than a chunk: 24 bytes an output would not fit the scratch.
  if (shape.q() > kChunkOutputs) throw Unsupported("rows longer than 2^24 outputs cannot be verified");
  if (!scratch_) scratch_.emplace(static_cast<std::size_t>(kScratchBytes));
  auto* const scratch = static_cast<double*>(scratch_->data());
  const gpu::ReferenceOut reference{scratch, scratch + kChunkOutputs,
                                    c.fingerprint ? scratch + 2 * kChunkOutputs : nullptr};
  const gpu::ReferenceIn in{shape, c.layout, c.x, c.filter, c.bias, c.rule, c.multiplicands};

  gpu::ImageNorms norms;
  std::optional<Allocation> norms_memory;
  if (c.algorithm == Algorithm::transform) {
    const std::int64_t x_planes = shape.n * shape.c, filter_planes = shape.k * shape.c;
    norms_memory.emplace(static_cast<std::size_t>(shape.n + x_planes + filter_planes) * sizeof(double));
    norms.norms = static_cast<double*>(norms_memory->data());
    norms.x_maxima = norms.norms + shape.n;
    norms.filter_maxima = norms.x_maxima + x_planes;
    gpu::image_norms(in, norms, stream_);
  }
  for_each_chunk(shape, kChunkOutputs, [&](const Chunk& chunk) {
    gpu::reference(in, chunk, reference, stream_);
    visit(chunk, reference, norms.norms);
  });
  synchronize();  // `norms_memory` goes
}

ErrorSummary CudaDevice::compare(const Comparison& c, std::span<ReferencePoint> samples) {
  const Allocation partials(gpu::kCompareBlocks * sizeof(ErrorAccumulator));
  const Allocation ratios(sizeof(RatioHistogram));
  const Allocation device_samples(std::max<std::size_t>(samples.size_bytes(), 1));
  std::vector<ErrorAccumulator> sums(gpu::kCompareBlocks);
  upload(partials.data(), sums.data(), sums.size() * sizeof(ErrorAccumulator));
  upload(device_samples.data(), samples.data(), samples.size_bytes());
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(ratios.data(), 0, sizeof(RatioHistogram), stream_));

  for_each_reference(c, [&](const Chunk& chunk, const gpu::ReferenceOut& reference,
                            const double* image_norms) {
    gpu::compare(
        c.shape, c.layout, c.y, chunk, reference, image_norms, c.rule,
        {static_cast<ErrorAccumulator*>(partials.data()), static_cast<unsigned long long*>(ratios.data())},
        stream_);
    gpu::gather(c.shape, c.layout, c.y, chunk, reference, static_cast<ReferencePoint*>(device_samples.data()),
                static_cast<int>(samples.size()), stream_);
  });

  RatioHistogram histogram{};
  download(sums.data(), partials.data(), sums.size() * sizeof(ErrorAccumulator));
  download(histogram.data(), ratios.data(), sizeof histogram);
  download(samples.data(), device_samples.data(), samples.size_bytes());
  for (std::size_t i = 1; i < sums.size(); ++i) sums[0].merge(sums[i]);
  return summarise(sums[0], histogram, c);
}

WrongCounts CudaDevice::count_wrong(const Comparison& c, std::uint32_t poison) {
  WrongCounts counts(c.shape);
  std::vector<std::int64_t>* const axes[] = {&counts.n, &counts.k, &counts.p, &counts.q};
  std::size_t words = 1;  // that of the poison, then the axes
  for (const auto* axis : axes) words += axis->size();
  const Allocation memory(words * sizeof(unsigned long long));
  CONVMISH_CHECK_CUDA(cudaMemsetAsync(memory.data(), 0, words * sizeof(unsigned long long), stream_));
  auto* const poisoned = static_cast<unsigned long long*>(memory.data());
  gpu::WrongCounters counters{.poisoned = poisoned, .poison = poison};
  counters.n = poisoned + 1;
  counters.k = counters.n + counts.n.size();
  counters.p = counters.k + counts.k.size();
  counters.q = counters.p + counts.p.size();

  for_each_reference(
      c, [&](const Chunk& chunk, const gpu::ReferenceOut& reference, const double* image_norms) {
        gpu::count_wrong(c.shape, c.layout, c.y, chunk, reference, image_norms, c.rule, counters, stream_);
      });

  // Counts are below 2^63: the words are those of an int64 too.
  download(&counts.poisoned, poisoned, sizeof counts.poisoned);
  const unsigned long long* from = counters.n;
  for (auto* axis : axes) {
    download(axis->data(), from, axis->size() * sizeof(std::int64_t));
    from += axis->size();
  }
  return counts;
}

/// The stream's hold and what it takes to look at y meanwhile. All is allocated before the stream is held:
/// freeing memory would wait for it.
class HeldStream {
 public:
  explicit HeldStream(cudaStream_t held) : held_(held), sum_(sizeof(unsigned long long)) {
    CONVMISH_CHECK_CUDA(cudaStreamCreateWithFlags(&watcher_, cudaStreamNonBlocking));
    CONVMISH_CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&gate_), sizeof *gate_, cudaHostAllocMapped));
    *gate_ = {};
  }
  ~HeldStream() {
    release();
    cudaStreamSynchronize(held_);  // its kernel reads the gate
    cudaFreeHost(gate_);
    cudaStreamDestroy(watcher_);
  }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;

  void hold(double limit_ms) { gpu::hold(gate_, limit_ms, held_); }
  void release() { std::atomic_ref(gate_->open).store(1); }
  bool expired() { return std::atomic_ref(gate_->expired).load() != 0; }

  std::uint64_t checksum(const void* data, std::size_t bytes) {
    auto* const sum = static_cast<unsigned long long*>(sum_.data());
    unsigned long long result = 0;
    CONVMISH_CHECK_CUDA(cudaMemsetAsync(sum, 0, sizeof *sum, watcher_));
    gpu::add_checksum(static_cast<const std::uint32_t*>(data), bytes / 4, sum, watcher_);
    CONVMISH_CHECK_CUDA(cudaMemcpyAsync(&result, sum, sizeof result, cudaMemcpyDeviceToHost, watcher_));
    CONVMISH_CHECK_CUDA(cudaStreamSynchronize(watcher_));
    return result;
  }

 private:
  cudaStream_t held_, watcher_ = nullptr;
  gpu::Gate* gate_ = nullptr;
  Allocation sum_;
};

Device::Ordering CudaDevice::watch_launch(const std::function<void()>& launch, const void* y,
                                          std::size_t bytes, double launch_ms) {
  // Long enough for a kernel beside the stream to write its first outputs; a stream that is held this much
  // longer was not waited for by mistake.
  const double watch_ms = std::min(2 * launch_ms + 1, 200.0), limit_ms = watch_ms + 2000;
  synchronize();
  HeldStream held(stream_);
  const std::uint64_t before = held.checksum(y, bytes);
  const auto start = std::chrono::steady_clock::now();
  held.hold(limit_ms);
  launch();
  bool changed = false;
  do changed = held.checksum(y, bytes) != before;
  while (!changed && !held.expired() &&
         std::chrono::steady_clock::now() - start < std::chrono::duration<double, std::milli>(watch_ms));
  if (held.expired()) return Ordering::waited;
  held.release();
  synchronize();
  return changed ? Ordering::outside_stream : Ordering::in_stream;
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    throw EnvironmentError("no usable CUDA GPU: " + why_unusable(error));
  if (index >= count)
    throw EnvironmentError("there is no cuda:" + std::to_string(index) + "; this machine has " +
                           (count == 1 ? "cuda:0 only" : std::to_string(count) + " GPUs, from cuda:0"));
  // Makes the context: the first call to need memory, and the device for itself.
  if (const cudaError_t error = cudaSetDevice(index); error != cudaSuccess)
    throw EnvironmentError("cuda:" + std::to_string(index) + " cannot be used: " + why_unusable(error));
  try {
    return std::make_unique<CudaDevice>(index);
  } catch (const std::exception& error) {
    throw EnvironmentError("cuda:" + std::to_string(index) + " cannot be used: " + error.what() +
                           " (code in this binary: " CONVMISH_CUDA_ARCHITECTURES ")");
  }
}

}  // namespace convmish
