// `convmish-bench calibrate`: how far times on this device can be trusted.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/open_device.hpp"
#include "core/statistics.hpp"
#include "report/number_text.hpp"
#include "run/calibration.hpp"

namespace convmish {
namespace {

std::string median_text(const TimeSummary& time, double scale, const char* unit) {
  std::string text = fmt::format("{:.4g} {} (median", scale * time.median, unit);
  if (time.ci95)
    text += fmt::format("; 95% CI {:.4g} to {:.4g}", scale * (*time.ci95)[0], scale * (*time.ci95)[1]);
  return text + ")";
}

std::string host_line(const Calibration& calibration) {
  const TimeSummary& enqueue = *calibration.enqueue_us;
  const std::size_t launches = enqueue.samples.size();
  return fmt::format(
      "enqueues a launch in {:.3g} us (median; 95% within {:.3g}); the device is kept busy for {} us "
      "meanwhile: {}",
      enqueue.median, enqueue.p95, Device::kLeadUs,
      calibration.behind_the_lead == 0
          ? "long enough"
          : fmt::format("too short for {} of {} launches, which a run would make again with more",
                        calibration.behind_the_lead, launches));
}

}  // namespace

ExitCode command_calibrate(const CommandLine& line, const DeviceFactories& devices) {
  const OpenedDevice opened = open_device(line.device, devices);
  Device& device = *opened.device;
  fmt::print("device        {} ({})\n", device.info().name, opened.reason);

  const Calibration calibration = calibrate(device);
  constexpr double kUs = 1e3;  // per millisecond
  const TimeSummary& empty = calibration.empty_launch_ms;
  fmt::print("clock         {}\n", calibration.resolution_ms
                                       ? fmt::format("resolves {:.3g} us, the least step between {} timings",
                                                     kUs * *calibration.resolution_ms, empty.samples.size())
                                       : fmt::format("gave the same time {} times", empty.samples.size()));
  fmt::print("empty launch  {}: no launch takes less\n", median_text(empty, kUs, "us"));
  if (calibration.enqueue_us) fmt::print("host          {}\n", host_line(calibration));
  const double bytes = static_cast<double>(calibration.copy_bytes);
  fmt::print("copy          {} in {}; {} read and written\n", scaled(bytes, "B"),
             median_text(calibration.copy_ms, 1, "ms"),
             scaled(2 * bytes / (1e-3 * calibration.copy_ms.median), "B/s"));
  return ExitCode::ok;
}

}  // namespace convmish
