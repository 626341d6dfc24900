// A library that answers as NVML does, for one GPU at 0000:1b:00.0. nvml_test.cpp sets its state by
// fake_nvml_state(); a query whose value is negative fails.
#include "tests/gpu/fake_nvml.hpp"

#include <cstdio>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotFound = 6, kUnknown = 999;  // nvmlReturn_t

FakeNvmlState state;

template <class Value>
int answer(long long value, Value* to) {
  if (value < 0) return kUnknown;
  *to = static_cast<Value>(value);
  return kSuccess;
}

}  // namespace

extern "C" {

FakeNvmlState* fake_nvml_state() {
  return &state;
}

int nvmlInit_v2() {
  ++state.opened;
  return kSuccess;
}
int nvmlShutdown() {
  --state.opened;
  return kSuccess;
}
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.95.05");
  return kSuccess;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** gpu) {
  if (std::strcmp(address, "0000:1b:00.0") != 0) return kNotFound;
  *gpu = &state;
  return kSuccess;
}
int nvmlDeviceGetClockInfo(void* gpu, int type, unsigned* mhz) {
  return gpu == &state && type == 1 ? answer(state.sm_mhz, mhz) : kUnknown;
}
int nvmlDeviceGetPowerUsage(void* gpu, unsigned* milliwatts) {
  return gpu == &state ? answer(state.milliwatts, milliwatts) : kUnknown;
}
int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* celsius) {
  return gpu == &state && sensor == 0 ? answer(state.celsius, celsius) : kUnknown;
}
// The name before driver 535: the one after is not here.
int nvmlDeviceGetCurrentClocksThrottleReasons(void* gpu, unsigned long long* reasons) {
  return gpu == &state ? answer(state.reasons, reasons) : kUnknown;
}
}
