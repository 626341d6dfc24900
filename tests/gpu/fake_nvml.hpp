// What the fake NVML library tells, set by the test.
#pragma once

struct FakeNvmlState {
  int opened = 0;  // calls of nvmlInit less those of nvmlShutdown
  long long sm_mhz = 1980, milliwatts = 412'500, celsius = 55, reasons = 0;
};

extern "C" FakeNvmlState* fake_nvml_state();
