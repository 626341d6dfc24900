#include "gpu/nvml.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/fake_nvml.hpp"

namespace convmish {
namespace {

using testing::ElementsAre;

constexpr const char* kAddress = "0000:1b:00.0";

/// The fake library, held open, with its first state at the start of every test.
class NvmlTest : public testing::Test {
 protected:
  NvmlTest() : library_(dlopen(CONVMISH_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {
    const auto state = reinterpret_cast<decltype(&fake_nvml_state)>(dlsym(library_, "fake_nvml_state"));
    state_ = state();
    *state_ = {};
  }
  ~NvmlTest() override { dlclose(library_); }

  FakeNvmlState& fake() { return *state_; }

 private:
  void* library_;
  FakeNvmlState* state_;
};

TEST_F(NvmlTest, TellsWhatTheLibraryAnswers) {
  const auto nvml = Nvml::open(kAddress, CONVMISH_FAKE_NVML);
  ASSERT_TRUE(nvml);
  EXPECT_EQ(nvml->driver_version(), "580.95.05");
  const ClockState state = nvml->clock_state();
  EXPECT_EQ(state.sm_mhz, 1980);
  EXPECT_EQ(state.power_w, 412.5);
  EXPECT_EQ(state.temperature_c, 55);
  EXPECT_TRUE(state.limits.empty());
}

TEST_F(NvmlTest, NamesEveryReasonButAnIdleGpu) {
  const auto nvml = Nvml::open(kAddress, CONVMISH_FAKE_NVML);
  fake().reasons = 0x1 | 0x4 | 0x40;
  EXPECT_THAT(nvml->clock_state().limits, ElementsAre(ClockLimit::sw_power_cap, ClockLimit::hw_thermal));
  fake().reasons = 0x1ff;
  EXPECT_EQ(nvml->clock_state().limits.size(), Words<ClockLimit>::list.size());
}

TEST_F(NvmlTest, LeavesOutWhatAQueryDoesNotAnswer) {
  const auto nvml = Nvml::open(kAddress, CONVMISH_FAKE_NVML);
  fake() = {.opened = 1, .sm_mhz = 345, .milliwatts = -1, .celsius = -1, .reasons = -1};
  EXPECT_EQ(nvml->clock_state(), (ClockState{345, {}, {}, {}}));
}

TEST_F(NvmlTest, IsShutDownAsOftenAsItIsOpened) {
  {
    const auto nvml = Nvml::open(kAddress, CONVMISH_FAKE_NVML);
    EXPECT_EQ(fake().opened, 1);
  }
  EXPECT_FALSE(Nvml::open("0000:99:00.0", CONVMISH_FAKE_NVML)) << "no such GPU";
  EXPECT_EQ(fake().opened, 0);
}

TEST(Nvml, IsNothingWithoutTheLibrary) {
  EXPECT_FALSE(Nvml::open(kAddress, "libnvidia-ml-of-no-machine.so.1"));
}

}  // namespace
}  // namespace convmish
