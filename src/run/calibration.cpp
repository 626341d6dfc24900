#include "run/calibration.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/statistics.hpp"

namespace convmish {
namespace {

constexpr int kEmptyLaunches = 1000, kCopies = 20;

std::optional<double> least_step(std::vector<double> samples) {
  std::ranges::sort(samples);
  std::optional<double> least;
  for (std::size_t i = 1; i < samples.size(); ++i)
    if (const double step = samples[i] - samples[i - 1]; step > 0 && (!least || step < *least)) least = step;
  return least;
}

/// Far beyond the last-level cache, and so long to copy that begin and end weigh little; a part of what is
/// free.
std::size_t copy_size(Device& device) {
  constexpr std::int64_t kLeast = std::int64_t{64} << 20, kMost = std::int64_t{512} << 20;
  const std::int64_t wanted = std::clamp(8 * device.info().l2_bytes, kLeast, kMost);
  const auto bytes = static_cast<std::size_t>(std::min(wanted, device.free_bytes() / 4)) / 1024 * 1024;
  if (bytes == 0) throw OutOfMemory(2 * wanted, device.free_bytes());
  return bytes;
}

void time_empty_launches(Device& device, Calibration& calibration) {
  const auto launch = [&] { device.launch_nothing(); };
  device.time_ms(launch, Cache::hot);  // loads the kernel
  std::vector<double> times_ms, enqueues_us;
  for (int i = 0; i < kEmptyLaunches; ++i) {
    const TimedLaunch timed = device.time_launch(launch, Cache::hot, Device::kLeadUs);
    times_ms.push_back(timed.ms);
    if (!timed.enqueue_us) continue;
    enqueues_us.push_back(*timed.enqueue_us);
    calibration.behind_the_lead += *timed.enqueue_us > Device::kLeadUs;
  }
  calibration.resolution_ms = least_step(times_ms);
  calibration.empty_launch_ms = summarise_samples(std::move(times_ms));
  if (!enqueues_us.empty()) calibration.enqueue_us = summarise_samples(std::move(enqueues_us));
}

void time_copies(Device& device, Calibration& calibration) {
  const std::size_t bytes = copy_size(device);
  const auto from = device.allocate(bytes), to = device.allocate(bytes);
  for (Buffer* buffer : {from.get(), to.get()})  // so that no page is touched first in a timed copy
    device.fill_words(buffer->data(), bytes, 0x3f800000);
  const auto copy = [&] { device.copy(to->data(), from->data(), bytes); };
  device.time_ms(copy, Cache::hot);
  std::vector<double> times_ms;
  for (int i = 0; i < kCopies; ++i) times_ms.push_back(device.time_ms(copy, Cache::hot));
  calibration.copy_bytes = static_cast<std::int64_t>(bytes);
  calibration.copy_ms = summarise_samples(std::move(times_ms));
}

}  // namespace

Calibration calibrate(Device& device) {
  Calibration calibration;
  time_empty_launches(device, calibration);
  time_copies(device, calibration);
  return calibration;
}

}  // namespace convmish
