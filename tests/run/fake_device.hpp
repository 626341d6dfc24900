// The CPU device with a scripted clock: what a launch takes, how long the host is busy with it, and what the
// clocks do are the test's to say, and what the device looks like and reaches. Everything else is the CPU's
// own.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/device.hpp"

namespace convmish {

class FakeDevice : public Device {
 public:
  /// Of the launch that has just been made, after `lead_us` of lead.
  std::function<TimedLaunch(double lead_us)> clock = [](double) { return TimedLaunch{1.0, std::nullopt}; };
  std::function<std::optional<ClockState>()> clocks = [] { return std::optional<ClockState>(); };
  bool gives_old_clocks = false;  // wherever it may
  std::function<MeasuredCeilings()> rates = [] { return MeasuredCeilings{}; };
  double rested_ms = 0;
  std::size_t held_bytes = 0, most_held_bytes = 0;  // of all buffers
  std::string gap_of_build;
  std::optional<std::int64_t> free;  // bytes; nothing: as many as the host has
  DeviceInfo looks = make_cpu_device()->info();

  TimedLaunch time_launch(const std::function<void()>& launch, Cache, double lead_us) override {
    launch();
    return clock(lead_us);
  }
  void rest_ms(double ms) override { rested_ms += ms; }
  void launch_nothing() override { cpu_->launch_nothing(); }
  void copy(void* to, const void* from, std::size_t bytes) override { cpu_->copy(to, from, bytes); }
  std::optional<ClockState> clock_state(std::chrono::milliseconds oldest) override {
    if (!last_clocks_ || !gives_old_clocks || oldest.count() == 0) last_clocks_ = clocks();
    return last_clocks_;
  }
  MeasuredCeilings measure_ceilings() override { return rates(); }
  std::string ceilings_gap_of_build() const override { return gap_of_build; }

  const DeviceInfo& info() const override { return looks; }
  void describe(Environment& environment) const override { cpu_->describe(environment); }
  std::int64_t free_bytes() override { return free.value_or(cpu_->free_bytes()); }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<CountedBuffer>(cpu_->allocate(bytes), *this);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    cpu_->download(host, device, bytes);
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    cpu_->upload(device, host, bytes);
  }
  void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination) override {
    cpu_->draw_tensor(spec, tensor, layout, destination);
  }
  void fill_words(void* destination, std::size_t bytes, std::uint32_t word) override {
    cpu_->fill_words(destination, bytes, word);
  }
  std::uint64_t checksum(const void* data, std::size_t bytes) override { return cpu_->checksum(data, bytes); }
  ErrorSummary compare(const Comparison& comparison, std::span<ReferencePoint> samples) override {
    return cpu_->compare(comparison, samples);
  }
  WrongCounts count_wrong(const Comparison& comparison, std::uint32_t poison) override {
    return cpu_->count_wrong(comparison, poison);
  }
  Stream stream() override { return cpu_->stream(); }
  void synchronize() override { cpu_->synchronize(); }
  Ordering watch_launch(const std::function<void()>& launch, const void* y, std::size_t bytes,
                        double launch_ms) override {
    return cpu_->watch_launch(launch, y, bytes, launch_ms);
  }

 private:
  class CountedBuffer : public Buffer {
   public:
    CountedBuffer(std::unique_ptr<Buffer> buffer, FakeDevice& device)
        : buffer_(std::move(buffer)), device_(device) {
      device_.held_bytes += bytes();
      device_.most_held_bytes = std::max(device_.most_held_bytes, device_.held_bytes);
    }
    CountedBuffer(const CountedBuffer&) = delete;
    CountedBuffer& operator=(const CountedBuffer&) = delete;
    ~CountedBuffer() override { device_.held_bytes -= bytes(); }
    void* data() override { return buffer_->data(); }
    std::size_t bytes() const override { return buffer_->bytes(); }
    Damage damage() override { return buffer_->damage(); }
    void lay_guards() override { buffer_->lay_guards(); }

   private:
    std::unique_ptr<Buffer> buffer_;
    FakeDevice& device_;
  };

  std::unique_ptr<Device> cpu_ = make_cpu_device();
  std::optional<ClockState> last_clocks_;
};

}  // namespace convmish
