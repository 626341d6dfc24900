// A device as the runner sees it: memory, work on inputs and outputs, and a clock. Implemented by
// src/gpu and src/cpu, and by a scripted fake in the tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "check/accumulator.hpp"
#include "check/fill.hpp"
#include "check/multiplicand.hpp"
#include "core/bank_conflicts.hpp"
#include "core/ceiling.hpp"
#include "core/result.hpp"
#include "core/variant.hpp"

namespace convmish {

/// Device memory with a guard zone on either side, so that a write outside it is seen.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;
  virtual std::size_t bytes() const = 0;
  float* floats() { return static_cast<float*>(data()); }

  enum class Damage { none, before, after };
  /// Whether a guard zone has been written to since it was laid.
  virtual Damage damage() = 0;
  /// Lays both guard zones anew, so that damage by one is not taken for another's.
  virtual void lay_guards() = 0;
};

/// A comparison of an output tensor with the float64 reference of the same inputs.
struct Comparison {
  Shape shape;
  const float* x = nullptr;  // the very inputs that the variant got, in `layout`
  const float* filter = nullptr;
  const float* bias = nullptr;
  const float* y = nullptr;
  Layout layout = Layout::nchw;
  AcceptanceRule rule;
  Algorithm algorithm = Algorithm::direct;             // transform: the image's norm takes the place of S
  bool fingerprint = false;                            // also compute Q and R
  bool activation_only = false;                        // z is a multiplicand: tell where the activation errs
  Multiplicands multiplicands = Multiplicands::exact;  // of the reference
};

/// Where the outputs lie that a comparison rejects: how many by each coordinate.
struct WrongCounts {
  explicit WrongCounts(const Shape& shape)
      : n(static_cast<std::size_t>(shape.n)),
        k(static_cast<std::size_t>(shape.k)),
        p(static_cast<std::size_t>(shape.p())),
        q(static_cast<std::size_t>(shape.q())) {}

  std::vector<std::int64_t> n, k, p, q;
  std::int64_t poisoned = 0;  // of them, those that hold the poison's very bits

  void merge(const WrongCounts& other) {
    const auto add = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    };
    add(n, other.n);
    add(k, other.k);
    add(p, other.p);
    add(q, other.q);
    poisoned += other.poisoned;
  }
};

/// One timed launch.
struct TimedLaunch {
  double ms = 0;
  /// What the host took to enqueue it, microseconds; absent where the host itself does the work.
  std::optional<double> enqueue_us;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  /// Adds what this device knows: driver, runtime and library versions.
  virtual void describe(Environment& environment) const = 0;

  virtual std::int64_t free_bytes() = 0;
  /// Aligned to 1024 bytes. Throws OutOfMemory.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;

  /// Writes a tensor of the fill; x and filter in the memory order of `layout`.
  virtual void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination) = 0;
  /// Sets every 32-bit word of a buffer.
  virtual void fill_words(void* destination, std::size_t bytes, std::uint32_t word) = 0;
  /// A 64-bit hash of the bytes that depends on their order.
  virtual std::uint64_t checksum(const void* data, std::size_t bytes) = 0;

  /// Reference and comparison, chunk by chunk: peak extra memory stays below 1 GiB. Fills in y, z and s of
  /// `samples`, whose indices ascend.
  virtual ErrorSummary compare(const Comparison& comparison, std::span<ReferencePoint> samples) = 0;

  /// A second pass over what compare() found wrong outputs in: where they are. `poison`: the word that the
  /// output was filled with before the launch.
  virtual WrongCounts count_wrong(const Comparison& comparison, std::uint32_t poison) = 0;

  /// Calls `launch`, of which a single block runs, the middle one of its first kernel, and tells what that
  /// did in shared memory. Nothing where the device, or the kernel, cannot be recorded; then none may have
  /// run.
  virtual std::optional<BlockTrace> trace_block(const std::function<void()>& /*launch*/) {
    return std::nullopt;
  }

  virtual Stream stream() = 0;
  /// Waits for all work; throws DeviceError if any of it failed.
  virtual void synchronize() = 0;

  /// Where a launch's work turned out to run; `waited`: on the stream, but launch did not return before.
  enum class Ordering { in_stream, outside_stream, waited };
  /// Calls `launch` once and watches `y`: a GPU holds its stream meanwhile, so that only work outside it can
  /// change y; on the CPU nothing may change y once launch has returned. `launch_ms` is about how long the
  /// work takes. Returns when the stream's work has ended.
  virtual Ordering watch_launch(const std::function<void()>& launch, const void* y, std::size_t bytes,
                                double launch_ms) = 0;

  /// Measures the rates that this device reaches; takes about a second. Empty where a device has none worth
  /// telling. Throws OutOfMemory or DeviceError.
  virtual MeasuredCeilings measure_ceilings() = 0;
  /// The gap that every measurement by this build has; empty where it can have none.
  virtual std::string ceilings_gap_of_build() const { return {}; }

  /// How long a GPU is kept busy before a timed launch, microseconds, so that the host can enqueue it
  /// meanwhile: several kernel launches of the slowest host.
  static constexpr double kLeadUs = 30;
  /// How long a GPU works before its clocks, low when it is idle, have risen, milliseconds.
  static constexpr double kWarmUpMs = 50;
  /// Times one call of `launch` on the device's own clock; cold: the last-level cache is overwritten first,
  /// outside the time. Where the host took longer than the lead, the time may hold a gap in which the device
  /// waited for the host.
  virtual TimedLaunch time_launch(const std::function<void()>& launch, Cache cache, double lead_us) = 0;
  double time_ms(const std::function<void()>& launch, Cache cache) {
    return time_launch(launch, cache, kLeadUs).ms;
  }

  /// Lets the device, which has nothing to do, rest.
  virtual void rest_ms(double ms) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  }

  /// What calibrates the clock, on the stream: a kernel that does nothing (nothing at all on the CPU), and a
  /// copy within the device's memory.
  virtual void launch_nothing() = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// Clocks, power and temperature, read at most `oldest` ago; zero: now. A question to the driver takes
  /// long. Nothing where the device does not tell.
  virtual std::optional<ClockState> clock_state(std::chrono::milliseconds /*oldest*/) { return std::nullopt; }
};

/// The devices that this build and this machine have.
std::unique_ptr<Device> make_cpu_device();
/// Throws EnvironmentError that says why there is none. Absent from builds without CUDA.
std::unique_ptr<Device> make_cuda_device(int index);

}  // namespace convmish
