// core's Device on the host: what checks the emulated kernels and the CPU libraries.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "check/checksum.hpp"
#include "check/summary.hpp"
#include "check/tensor_view.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/library_versions.hpp"
#include "cpu/parallel.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace convmish {
namespace {

constexpr std::size_t kAlignment = 1024;
constexpr std::size_t kGuardBytes = 4096;
constexpr std::int64_t kGrain = 1 << 14;  // elements a thread takes at a time in elementwise loops

std::int64_t free_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  for (std::int64_t kib = 0; meminfo >> key >> kib; meminfo.ignore(16, '\n'))
    if (key == "MemAvailable:") return kib * 1024;
  return static_cast<std::int64_t>(get_avphys_pages()) * sysconf(_SC_PAGESIZE);
}

/// Guard zones are also poisoned for AddressSanitizer, which then stops at the very access.
class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes)
      : bytes_(bytes), padded_((bytes + kAlignment - 1) / kAlignment * kAlignment) {
    memory_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, padded_ + 2 * kGuardBytes));
    if (!memory_) throw OutOfMemory(static_cast<std::int64_t>(bytes), free_memory());
    // The zone behind begins at the first byte past the buffer, not at the padding's end.
    std::fill_n(before(), kGuardBytes, kGuardByte);
    std::fill(after(), end(), kGuardByte);
    ASAN_POISON_MEMORY_REGION(before(), kGuardBytes);
    ASAN_POISON_MEMORY_REGION(after(), static_cast<std::size_t>(end() - after()));
  }
  ~HostBuffer() override {
    ASAN_UNPOISON_MEMORY_REGION(memory_, padded_ + 2 * kGuardBytes);
    std::free(memory_);
  }

  void* data() override { return memory_ + kGuardBytes; }
  std::size_t bytes() const override { return bytes_; }

  Damage damage() override {
    const auto intact = [](std::byte* from, std::byte* to) {
      ASAN_UNPOISON_MEMORY_REGION(from, static_cast<std::size_t>(to - from));
      const bool all = std::all_of(from, to, [](std::byte b) { return b == kGuardByte; });
      ASAN_POISON_MEMORY_REGION(from, static_cast<std::size_t>(to - from));
      return all;
    };
    if (!intact(before(), before() + kGuardBytes)) return Damage::before;
    return intact(after(), end()) ? Damage::none : Damage::after;
  }

 private:
  static constexpr std::byte kGuardByte{0xC5};

  std::byte* before() { return memory_; }
  std::byte* after() { return memory_ + kGuardBytes + bytes_; }
  std::byte* end() { return memory_ + padded_ + 2 * kGuardBytes; }

  std::size_t bytes_, padded_;
  std::byte* memory_;
};

/// float64 reference of one output row; z, s and q hold chunk.q values each. `q` may be null.
void reference_row(const Comparison& c, std::int64_t n, std::int64_t k, std::int64_t p, double* z, double* s,
                   double* q) {
  const Shape& shape = c.shape;
  const Strides xs = x_strides(c.layout, shape), ws = filter_strides(c.layout, shape);
  const auto columns = shape.q();
  const bool may_overflow = c.rule.overflowing_multiplicand < HUGE_VAL;
  std::fill_n(z, columns, 0.0);
  std::fill_n(s, columns, 0.0);
  if (q) std::fill_n(q, columns, 0.0);
  for (std::int64_t channel = 0; channel < shape.c; ++channel)
    for (int r = 0; r < kFilterSize; ++r) {
      const float* const row = c.x + xs.offset(n, channel, p + r, 0);
      for (int t = 0; t < kFilterSize; ++t) {
        const double w = static_cast<double>(c.filter[ws.offset(k, channel, r, t)]);
        for (std::int64_t i = 0; i < columns; ++i) {
          const double product = w * static_cast<double>(row[(i + t) * xs.column]);  // exact: 24 + 24 bits
          z[i] += product;
          s[i] += std::fabs(product);
          if (q) q[i] += product * product;
        }
        if (!may_overflow) continue;
        for (std::int64_t i = 0; i < columns; ++i)
          if (c.rule.overflows(w) || c.rule.overflows(static_cast<double>(row[(i + t) * xs.column])))
            s[i] = NAN;
      }
    }
  const double bias = static_cast<double>(c.bias[k]);
  for (std::int64_t i = 0; i < columns; ++i) {
    z[i] += bias;
    s[i] += std::fabs(bias);
    if (q) q[i] = std::sqrt(q[i]);
  }
}

class CpuDevice final : public Device {
 public:
  CpuDevice() {
    info_.kind = DeviceKind::cpu;
    info_.name = cpu_name();
    info_.multiprocessors = cpu::hardware_threads();
    struct sysinfo system {};
    if (sysinfo(&system) == 0)
      info_.memory_bytes = static_cast<std::int64_t>(system.totalram) * system.mem_unit;
    info_.l2_bytes = std::max({sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 20});
  }

  const DeviceInfo& info() const override { return info_; }
  void describe(Environment& environment) const override {
    environment.device = info_;
    environment.onednn = library_version("onednn");
  }

  std::int64_t free_bytes() override { return free_memory(); }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    const std::int64_t available = free_bytes();
    if (static_cast<std::int64_t>(bytes) > available)
      throw OutOfMemory(static_cast<std::int64_t>(bytes), available);
    return std::make_unique<HostBuffer>(bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    if (bytes) std::memcpy(host, device, bytes);
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    if (bytes) std::memcpy(device, host, bytes);
  }

  void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination) override {
    const TensorDims dims = tensor_dims(spec.shape, tensor);
    const Strides to = strides(layout, dims.channels, dims.rows, dims.columns);
    cpu::parallel_ranges(dims.count(), kGrain, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) destination[dims.offset(to, i)] = draw(spec, tensor, i);
    });
  }
  void fill_words(void* destination, std::size_t bytes, std::uint32_t word) override {
    std::fill_n(static_cast<std::uint32_t*>(destination), bytes / 4, word);
  }
  std::uint64_t checksum(const void* data, std::size_t bytes) override {
    const auto* words = static_cast<const std::uint32_t*>(data);
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(cpu::hardware_threads()));
    cpu::parallel_ranges(static_cast<std::int64_t>(bytes / 4), kGrain,
                         [&](int worker, std::int64_t begin, std::int64_t end) {
                           std::uint64_t sum = 0;
                           for (std::int64_t i = begin; i < end; ++i) sum += checksum_term(i, words[i]);
                           sums[static_cast<std::size_t>(worker)] += sum;
                         });
    std::uint64_t total = 0;
    for (const auto sum : sums) total += sum;
    return total;
  }

  ErrorSummary compare(const Comparison& comparison, std::span<ReferencePoint> samples) override;

  Stream stream() override { return nullptr; }
  void synchronize() override {}
  Ceilings ceilings() override { return {}; }

  double time_ms(const std::function<void()>& launch, Cache cache) override {
    if (cache == Cache::cold) {
      flush_.resize(static_cast<std::size_t>(2 * info_.l2_bytes));
      std::memset(flush_.data(), ++flush_value_, flush_.size());
    }
    const auto start = std::chrono::steady_clock::now();
    launch();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  static std::string cpu_name() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);)
      if (line.starts_with("model name"))
        if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    return "CPU";
  }

  DeviceInfo info_;
  std::vector<unsigned char> flush_;
  unsigned char flush_value_ = 0;
};

ErrorSummary CpuDevice::compare(const Comparison& c, std::span<ReferencePoint> samples) {
  const Shape& shape = c.shape;
  const Strides ys = y_strides(c.layout, shape);
  const auto workers = static_cast<std::size_t>(cpu::hardware_threads());
  const auto row = static_cast<std::size_t>(shape.q());
  const std::int64_t rows = shape.n * shape.k * shape.p();

  // A transform errs by norm: its s is the largest of the image, found in a pass of its own.
  std::vector<double> largest_s;
  struct Worker {
    ErrorAccumulator sums;
    RatioHistogram ratios{};
    std::vector<double> z, s, q;
  };
  std::vector<Worker> states(workers);
  for (Worker& state : states) {
    state.z.resize(row);
    state.s.resize(row);
    if (c.fingerprint) state.q.resize(row);
  }
  const auto compute_row = [&](Worker& state, std::int64_t i) {
    const std::int64_t p = i % shape.p(), k = i / shape.p() % shape.k, n = i / shape.p() / shape.k;
    reference_row(c, n, k, p, state.z.data(), state.s.data(), c.fingerprint ? state.q.data() : nullptr);
    return Chunk::At{n, k, p, 0};
  };
  if (c.algorithm == Algorithm::transform) {
    std::vector<std::vector<double>> largest(workers, std::vector<double>(static_cast<std::size_t>(shape.n)));
    cpu::parallel_for(rows, [&](int worker, std::int64_t i) {
      const auto w = static_cast<std::size_t>(worker);
      const auto at = compute_row(states[w], i);
      double& most = largest[w][static_cast<std::size_t>(at.n)];
      for (const double s : states[w].s)
        if (!(s <= most)) most = s;  // keeps a NaN
    });
    largest_s.resize(static_cast<std::size_t>(shape.n));
    for (const auto& of_worker : largest)
      for (std::size_t n = 0; n < largest_s.size(); ++n)
        if (!(of_worker[n] <= largest_s[n])) largest_s[n] = of_worker[n];
  }

  cpu::parallel_for(rows, [&](int worker, std::int64_t i) {
    Worker& state = states[static_cast<std::size_t>(worker)];
    const auto at = compute_row(state, i);
    // Samples ascend: those of this row are one contiguous piece, which no other worker touches.
    auto sample =
        std::lower_bound(samples.begin(), samples.end(), i * shape.q(),
                         [](const ReferencePoint& s, std::int64_t index) { return s.index < index; });
    for (std::int64_t column = 0; column < shape.q(); ++column) {
      const auto j = static_cast<std::size_t>(column);
      ReferencePoint point{i * shape.q() + column, c.y[ys.offset(at.n, at.k, at.p, column)], state.z[j],
                           state.s[j]};
      for (; sample != samples.end() && sample->index == point.index; ++sample) *sample = point;
      if (!largest_s.empty()) point.s = largest_s[static_cast<std::size_t>(at.n)];
      const double ratio = state.sums.add(point, c.fingerprint ? state.q[j] : 0.0, c.rule);
      ++state.ratios[static_cast<std::size_t>(ratio_bin(ratio))];
    }
  });

  for (std::size_t w = 1; w < workers; ++w) {
    states[0].sums.merge(states[w].sums);
    for (std::size_t bin = 0; bin < kRatioBins; ++bin) states[0].ratios[bin] += states[w].ratios[bin];
  }
  return summarise(states[0].sums, states[0].ratios, shape, c.fingerprint);
}

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace convmish
