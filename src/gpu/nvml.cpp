#include "gpu/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <optional>
#include <utility>

namespace convmish {
namespace {

// The few declarations that are needed, from NVML's API reference: no header of the CUDA toolkit is, so that
// the tool builds where that lacks nvml.h. All of them are the library's stable interface.
using Return = int;                     // nvmlReturn_t
using Gpu = void*;                      // nvmlDevice_t
constexpr Return kSuccess = 0;          // NVML_SUCCESS
constexpr int kSmClock = 1;             // NVML_CLOCK_SM
constexpr int kGpuTemperature = 0;      // NVML_TEMPERATURE_GPU
constexpr unsigned kVersionBytes = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

/// nvmlClocksEventReason*. Bit 0, an idle GPU, is left out: it says nothing of a launch.
constexpr std::array<std::pair<unsigned long long, ClockLimit>, 8> kReasons{{
    {0x02, ClockLimit::application_clocks},
    {0x04, ClockLimit::sw_power_cap},
    {0x08, ClockLimit::hw_slowdown},
    {0x10, ClockLimit::sync_boost},
    {0x20, ClockLimit::sw_thermal},
    {0x40, ClockLimit::hw_thermal},
    {0x80, ClockLimit::power_brake},
    {0x100, ClockLimit::display_clocks},
}};

/// The answer of a query that writes it through its last argument; nothing where it fails or is not there.
template <class Answer, class Query, class... Arguments>
std::optional<Answer> ask(Query query, Arguments... arguments) {
  Answer answer{};
  if (!query || query(arguments..., &answer) != kSuccess) return std::nullopt;
  return answer;
}

}  // namespace

struct Nvml::Functions {
  explicit Functions(void* handle) : library(handle) {}
  ~Functions() { dlclose(library); }

  template <class Function>
  void find(Function& function, const char* name, const char* earlier_name = nullptr) const {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && earlier_name) find(function, earlier_name);
  }

  void* library;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*gpu_at)(const char*, Gpu*) = nullptr;
  Return (*clock_mhz)(Gpu, int, unsigned*) = nullptr;
  Return (*power_mw)(Gpu, unsigned*) = nullptr;
  Return (*temperature_c)(Gpu, int, unsigned*) = nullptr;
  Return (*reasons)(Gpu, unsigned long long*) = nullptr;
};

std::unique_ptr<Nvml> Nvml::open(const std::string& pci_bus_id, const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return nullptr;
  auto nvml = std::make_unique<Functions>(handle);
  nvml->find(nvml->init, "nvmlInit_v2");
  nvml->find(nvml->shutdown, "nvmlShutdown");
  nvml->find(nvml->driver_version, "nvmlSystemGetDriverVersion");
  nvml->find(nvml->gpu_at, "nvmlDeviceGetHandleByPciBusId_v2");
  nvml->find(nvml->clock_mhz, "nvmlDeviceGetClockInfo");
  nvml->find(nvml->power_mw, "nvmlDeviceGetPowerUsage");
  nvml->find(nvml->temperature_c, "nvmlDeviceGetTemperature");
  // Renamed with driver 535.
  nvml->find(nvml->reasons, "nvmlDeviceGetCurrentClocksEventReasons",
             "nvmlDeviceGetCurrentClocksThrottleReasons");

  if (!nvml->init || !nvml->shutdown || nvml->init() != kSuccess) return nullptr;
  const std::optional<Gpu> gpu = ask<Gpu>(nvml->gpu_at, pci_bus_id.c_str());
  if (!gpu) {
    nvml->shutdown();
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(nvml), *gpu));
}

Nvml::Nvml(std::unique_ptr<Functions> functions, void* gpu) : functions_(std::move(functions)), gpu_(gpu) {}

Nvml::~Nvml() {
  functions_->shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, kVersionBytes> text{};
  if (!functions_->driver_version || functions_->driver_version(text.data(), kVersionBytes) != kSuccess)
    return {};
  text.back() = '\0';
  return text.data();
}

ClockState Nvml::clock_state() const {
  ClockState state;
  if (const auto mhz = ask<unsigned>(functions_->clock_mhz, gpu_, kSmClock))
    state.sm_mhz = static_cast<int>(*mhz);
  if (const auto milliwatts = ask<unsigned>(functions_->power_mw, gpu_)) state.power_w = *milliwatts / 1e3;
  if (const auto celsius = ask<unsigned>(functions_->temperature_c, gpu_, kGpuTemperature))
    state.temperature_c = static_cast<int>(*celsius);
  if (const auto reasons = ask<unsigned long long>(functions_->reasons, gpu_))
    for (const auto& [bit, limit] : kReasons)
      if (*reasons & bit) state.limits.push_back(limit);
  return state;
}

}  // namespace convmish
