// core's Device on the host: what checks the emulated kernels and the CPU libraries.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "check/checksum.hpp"
#include "check/summary.hpp"
#include "check/tensor_view.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/library_versions.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simt/access_recorder.hpp"

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
    HostBuffer::lay_guards();
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

  void lay_guards() override {
    // The zone behind begins at the first byte past the buffer, not at the padding's end.
    for (const auto& [from, to] : {std::pair{before(), before() + kGuardBytes}, {after(), end()}}) {
      const auto bytes = static_cast<std::size_t>(to - from);
      ASAN_UNPOISON_MEMORY_REGION(from, bytes);
      std::fill(from, to, kGuardByte);
      ASAN_POISON_MEMORY_REGION(from, bytes);
    }
  }

 private:
  static constexpr std::byte kGuardByte{0xC5};

  std::byte* before() { return memory_; }
  std::byte* after() { return memory_ + kGuardBytes + bytes_; }
  std::byte* end() { return memory_ + padded_ + 2 * kGuardBytes; }

  std::size_t bytes_, padded_;
  std::byte* memory_;
};

/// float64 reference of a comparison, one row of y at a time.
class RowReference {
 public:
  explicit RowReference(const Comparison& comparison)
      : c_(comparison),
        x_(static_cast<std::size_t>(c_.shape.w)),
        z_(static_cast<std::size_t>(c_.shape.q())),
        s_(z_.size()),
        q_(c_.fingerprint ? z_.size() : 0) {}

  void compute(const Chunk::At& at) {
    const Shape& shape = c_.shape;
    const Strides xs = x_strides(c_.layout, shape), ws = filter_strides(c_.layout, shape);
    const bool may_overflow = c_.rule.overflowing_multiplicand < HUGE_VAL;
    for (auto* const sums : {&z_, &s_, &q_}) std::fill(sums->begin(), sums->end(), 0.0);
    for (std::int64_t channel = 0; channel < shape.c; ++channel)
      for (int r = 0; r < kFilterSize; ++r) {
        const float* const row = c_.x + xs.offset(at.n, channel, at.p + r, 0);
        for (std::size_t i = 0; i < x_.size(); ++i)
          x_[i] = multiplicand(row[static_cast<std::int64_t>(i) * xs.column]);
        for (int t = 0; t < kFilterSize; ++t)
          add_products(x_.data() + t, multiplicand(c_.filter[ws.offset(at.k, channel, r, t)]), may_overflow);
      }
    const double bias = static_cast<double>(c_.bias[at.k]);
    for (double& z : z_) z += bias;
    for (double& s : s_) s += std::fabs(bias);
    for (double& q : q_) q = std::sqrt(q);
  }

  double z(std::size_t column) const { return z_[column]; }
  double s(std::size_t column) const { return s_[column]; }
  double q(std::size_t column) const { return q_.empty() ? 0.0 : q_[column]; }

 private:
  double multiplicand(float value) const {
    return static_cast<double>(round_multiplicand(c_.multiplicands, value));
  }
  void add_products(const double* x, double w, bool may_overflow) {
    const std::size_t columns = z_.size();
    for (std::size_t i = 0; i < columns; ++i) {
      const double product = w * x[i];  // exact: 24 + 24 bits
      z_[i] += product;
      s_[i] += std::fabs(product);
    }
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] += w * x[i] * (w * x[i]);
    if (!may_overflow) return;
    for (std::size_t i = 0; i < columns; ++i)
      if (c_.rule.overflows(w) || c_.rule.overflows(x[i])) s_[i] = NAN;
  }

  const Comparison& c_;
  std::vector<double> x_;  // a row of x, as multiplicands
  std::vector<double> z_, s_, q_;
};

/// A NaN counts as the largest.
void raise(double& most, double value) {
  if (most == most && !(value <= most)) most = value;
}

std::size_t worker_count() {
  return static_cast<std::size_t>(cpu::hardware_threads());
}

/// Calls visit(worker, reference, at, i) for every row i of y, with the reference of its outputs computed.
template <class Visit>
void for_each_row(const Comparison& c, Visit visit) {
  std::vector<RowReference> references(worker_count(), RowReference(c));
  const Shape& shape = c.shape;
  cpu::parallel_for(shape.n * shape.k * shape.p(), [&](int worker, std::int64_t i) {
    const auto w = static_cast<std::size_t>(worker);
    const Chunk::At at{i / shape.p() / shape.k, i / shape.p() % shape.k, i % shape.p(), 0};
    references[w].compute(at);
    visit(w, references[w], at, i);
  });
}

/// The largest magnitude of each plane, [outer][channel]; not a number where one is, or where one overflows
/// as a multiplicand.
std::vector<double> plane_maxima(const Comparison& c, Tensor tensor, const float* values) {
  const TensorDims dims = tensor_dims(c.shape, tensor);
  const Strides from = strides(c.layout, dims.channels, dims.rows, dims.columns);
  std::vector<double> maxima(static_cast<std::size_t>(dims.outer * dims.channels));
  cpu::parallel_for(dims.outer * dims.channels, [&](int, std::int64_t plane) {
    double& most = maxima[static_cast<std::size_t>(plane)];
    for (std::int64_t i = 0; i < dims.rows * dims.columns; ++i)
      raise(most,
            std::fabs(static_cast<double>(values[dims.offset(from, plane * dims.rows * dims.columns + i)])));
    if (c.rule.overflows(most)) most = NAN;
  });
  return maxima;
}

/// By image, what takes the place of S for a transform.
std::vector<double> image_norms(const Comparison& c) {
  const std::vector<double> x = plane_maxima(c, Tensor::x, c.x),
                            filter = plane_maxima(c, Tensor::filter, c.filter);
  std::vector<double> norms(static_cast<std::size_t>(c.shape.n));
  const auto channels = static_cast<std::size_t>(c.shape.c);
  for (std::size_t n = 0; n < norms.size(); ++n)
    for (std::size_t k = 0; k < static_cast<std::size_t>(c.shape.k); ++k)
      raise(norms[n], std::inner_product(x.begin() + static_cast<std::ptrdiff_t>(n * channels),
                                         x.begin() + static_cast<std::ptrdiff_t>((n + 1) * channels),
                                         filter.begin() + static_cast<std::ptrdiff_t>(k * channels),
                                         std::fabs(static_cast<double>(c.bias[k]))));
  return norms;
}

/// Calls visit(worker, point, q, at) for every output, with the s that its judgement takes.
template <class Visit>
void for_each_output(const Comparison& c, std::span<ReferencePoint> samples, Visit visit) {
  const Strides ys = y_strides(c.layout, c.shape);
  const std::vector<double> norms =
      c.algorithm == Algorithm::transform ? image_norms(c) : std::vector<double>();
  for_each_row(c, [&](std::size_t worker, const RowReference& reference, Chunk::At at, std::int64_t row) {
    // Samples ascend: those of this row are one contiguous piece, which no other worker touches.
    auto sample =
        std::lower_bound(samples.begin(), samples.end(), row * c.shape.q(),
                         [](const ReferencePoint& s, std::int64_t index) { return s.index < index; });
    for (; at.q < c.shape.q(); ++at.q) {
      const auto column = static_cast<std::size_t>(at.q);
      ReferencePoint point{row * c.shape.q() + at.q, c.y[ys.offset(at.n, at.k, at.p, at.q)],
                           reference.z(column), reference.s(column)};
      for (; sample != samples.end() && sample->index == point.index; ++sample) *sample = point;
      if (!norms.empty()) point.s = norms[static_cast<std::size_t>(at.n)];
      visit(worker, point, reference.q(column), at);
    }
  });
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
  WrongCounts count_wrong(const Comparison& comparison, std::uint32_t poison) override;

  std::optional<BlockTrace> trace_block(const std::function<void()>& launch) override {
    return simt::trace_middle_block(launch);
  }

  Stream stream() override { return nullptr; }
  void synchronize() override {}
  MeasuredCeilings measure_ceilings() override { return {}; }

  Ordering watch_launch(const std::function<void()>& launch, const void* y, std::size_t bytes,
                        double /*launch_ms*/) override {
    launch();
    const std::uint64_t at_return = checksum(y, bytes);
    // A thread may be slow to start on a busy host.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return checksum(y, bytes) == at_return ? Ordering::in_stream : Ordering::outside_stream;
  }

  void launch_nothing() override {}
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  TimedLaunch time_launch(const std::function<void()>& launch, Cache cache, double /*lead_us*/) override {
    if (cache == Cache::cold) {
      flush_.resize(static_cast<std::size_t>(2 * info_.l2_bytes));
      std::memset(flush_.data(), ++flush_value_, flush_.size());
    }
    const auto start = std::chrono::steady_clock::now();
    launch();
    return {.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
            .enqueue_us = std::nullopt};
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
  struct Worker {
    ErrorAccumulator sums;
    RatioHistogram ratios{};
  };
  std::vector<Worker> workers(worker_count());
  for_each_output(c, samples,
                  [&](std::size_t worker, const ReferencePoint& point, double q, const Chunk::At&) {
                    const double ratio = workers[worker].sums.add(point, q, c.rule);
                    ++workers[worker].ratios[static_cast<std::size_t>(ratio_bin(ratio))];
                  });
  Worker& total = workers[0];
  for (std::size_t w = 1; w < workers.size(); ++w) {
    total.sums.merge(workers[w].sums);
    for (std::size_t bin = 0; bin < kRatioBins; ++bin) total.ratios[bin] += workers[w].ratios[bin];
  }
  return summarise(total.sums, total.ratios, c);
}

WrongCounts CpuDevice::count_wrong(const Comparison& c, std::uint32_t poison) {
  std::vector<WrongCounts> workers(worker_count(), WrongCounts(c.shape));
  for_each_output(c, {}, [&](std::size_t worker, const ReferencePoint& point, double, const Chunk::At& at) {
    WrongCounts& counts = workers[worker];
    if (judge(static_cast<double>(point.y), point.z, point.s, c.rule).right) return;
    counts.poisoned += std::bit_cast<std::uint32_t>(point.y) == poison;
    ++counts.n[static_cast<std::size_t>(at.n)];
    ++counts.k[static_cast<std::size_t>(at.k)];
    ++counts.p[static_cast<std::size_t>(at.p)];
    ++counts.q[static_cast<std::size_t>(at.q)];
  });
  for (std::size_t w = 1; w < workers.size(); ++w) workers[0].merge(workers[w]);
  return workers[0];
}

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace convmish
