// What a run leaves in its report while it goes on, and when the device is lost under it.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "core/error.hpp"
#include "report/json.hpp"
#include "tests/report/scratch_folder.hpp"
#include "tests/run/fake_device.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

constexpr Shape kFirst{.n = 1, .c = 3, .h = 6, .w = 6, .k = 2},
    kSecond{.n = 1, .c = 3, .h = 7, .w = 6, .k = 2};

/// Calls the test before inputs are drawn, in the process that runs the variants.
class WatchedDevice : public FakeDevice {
 public:
  using Watcher = std::function<void(const FillSpec&)>;
  explicit WatchedDevice(Watcher watcher) : watcher_(std::move(watcher)) {}

  void draw_tensor(const FillSpec& spec, Tensor tensor, Layout layout, float* destination) override {
    watcher_(spec);
    FakeDevice::draw_tensor(spec, tensor, layout, destination);
  }

 private:
  Watcher watcher_;
};

class CommandRun : public ::testing::Test {
 protected:
  CommandRun() {
    ::testing::internal::CaptureStdout();  // the tables are not what is tested
    registry_.add(host_variant("honest"));
    line_.device = {DeviceChoice::Kind::cpu};
    line_.report.json = scratch_.path() / "report.json";
    line_.run.shapes = {kFirst, kSecond};
    line_.run.fills = {Fill::kernelbench, Fill::normal};
    line_.run.time = false;
  }
  ~CommandRun() override { ::testing::internal::GetCapturedStdout(); }

  ExitCode run(const WatchedDevice::Watcher& watcher) {
    return command_run(line_, {.cpu = [&] { return std::make_unique<WatchedDevice>(watcher); }, .cuda = {}},
                       registry_);
  }

  std::vector<CaseResult> reported() const { return read_report(line_.report.json).cases; }

  testing::ScratchFolder scratch_;
  Registry registry_;
  CommandLine line_;
};

void lose_the_device_at(const FillSpec& spec) {
  if (spec.shape == kSecond && spec.fill == Fill::normal) throw EnvironmentError("the GPU is lost");
}

TEST_F(CommandRun, KeepsTheChecksOfTheShapeInWhichTheDeviceIsLost) {
  EXPECT_THROW(run(lose_the_device_at), EnvironmentError);
  const auto cases = reported();
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].verdict, Verdict::passed);
  EXPECT_EQ(cases[1].reason, "interrupted");
  EXPECT_EQ(cases[1].checks.size(), 1U);
}

TEST_F(CommandRun, TellsWhatEndedItRatherThanThatTheReportCannotBeWritten) {
  line_.report.json = "/dev/full";  // no file: written to at the end only
  EXPECT_THROW(run(lose_the_device_at), EnvironmentError);
  EXPECT_EQ(run([](const FillSpec&) {}), ExitCode::usage);
}

TEST_F(CommandRun, WritesAFinishedShapeWhileTheNextOneTakesLong) {
  const auto wait_for_the_first = [this](const FillSpec& spec) {
    if (spec.shape != kSecond) return;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (reported().empty()) {
      if (std::chrono::steady_clock::now() > patience) throw EnvironmentError("nothing was written");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (reported().front().verdict != Verdict::passed) throw EnvironmentError("an unfinished case was kept");
  };
  EXPECT_EQ(run(wait_for_the_first), ExitCode::ok);
}

}  // namespace
}  // namespace convmish
