// NVIDIA's management library (NVML): a GPU's clocks, power and temperature, what holds its clocks down, and
// the driver's version. Loaded when the tool runs: where it is absent, as in some containers, nothing is
// told.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"

namespace convmish {

class Nvml {
 public:
  /// For the GPU at a PCI address, as cudaDeviceGetPCIBusId() writes it. Null where NVML cannot be loaded or
  /// does not know the GPU.
  static std::unique_ptr<Nvml> open(const std::string& pci_bus_id, const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// As in "580.95.05"; empty where it is not told.
  std::string driver_version() const;

  /// What each query answers now; absent where it fails. The power is the driver's mean over the last second
  /// on recent GPUs.
  ClockState clock_state() const;

 private:
  struct Functions;
  Nvml(std::unique_ptr<Functions> functions, void* gpu);

  std::unique_ptr<Functions> functions_;
  void* gpu_;
};

}  // namespace convmish
