// The command on a registry of its own: a mutant that survives, or an honest variant that is rejected, must
// not go unnoticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "report/json.hpp"
#include "tests/report/scratch_folder.hpp"
#include "tests/run/fake_device.hpp"
#include "tests/run/host_variants.hpp"

namespace convmish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void do_nothing(const Problem&, const LaunchArgs&) {}

std::unique_ptr<FakeDevice> fake_gpu(int index) {
  auto device = std::make_unique<FakeDevice>();
  device->looks.kind = DeviceKind::cuda;
  device->looks.index = index;
  return device;
}

struct Outcome {
  ExitCode code;
  std::string text;
};

class Selftest : public ::testing::Test {
 protected:
  void add(std::string name, Group group, HostLaunch launch, DeviceKind device = DeviceKind::cpu) {
    Variant variant = host_variant(std::move(name), std::move(launch));
    variant.device = device;
    variant.group = group;
    registry_.add(std::move(variant));
  }

  Outcome run(std::function<std::unique_ptr<Device>()> make_device = make_cpu_device) {
    ::testing::internal::CaptureStdout();
    const ExitCode code =
        command_selftest(line_, {.cpu = make_device, .cuda = [&](int) { return make_device(); }}, registry_);
    return {code, ::testing::internal::GetCapturedStdout()};
  }

  Registry registry_;
  CommandLine line_{.verb = Verb::selftest, .device = {DeviceChoice::Kind::cpu}};
};

TEST_F(Selftest, IsSatisfiedWhenMutantsAreCaughtAndHonestVariantsPass) {
  add("lazy", Group::mutant, do_nothing);
  add("honest", Group::standard, convolve_on_host);
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, ExitCode::ok);
  EXPECT_THAT(outcome.text, HasSubstr("1 of 1 mutants caught, 1 of 1 honest variants not rejected"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("survived")));
}

/// No kernel can be this fast and right: the device's clock must lie for it.
TEST_F(Selftest, CatchesATimeThatTheDeviceCannotReach) {
  Variant tells_its_work = host_variant("tells_its_work");  // 356 kFLOP of FFMA
  tells_its_work.group = Group::mutant;
  registry_.add(tells_its_work);
  Variant tells_nothing = host_variant("tells_nothing");
  tells_nothing.pipe = Pipe::unknown;
  registry_.add(tells_nothing);
  const Outcome outcome = run([] {
    auto device = std::make_unique<FakeDevice>();
    device->looks.name = "NVIDIA H200";
    device->looks.l2_bytes = 1 << 20;
    device->clock = [](double) { return TimedLaunch{1e-6, std::nullopt}; };
    return device;
  });
  EXPECT_EQ(outcome.code, ExitCode::ok) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("impossible_time        timing"));
}

TEST_F(Selftest, NamesAMutantThatSurvives) {
  add("lazy", Group::mutant, do_nothing);
  add("right_after_all", Group::mutant, convolve_on_host);
  add("honest", Group::standard, convolve_on_host);
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, ExitCode::wrong);
  EXPECT_THAT(outcome.text, HasSubstr("survived: right_after_all:fp32\n"));
}

TEST_F(Selftest, NamesAnHonestVariantThatIsRejected) {
  add("lazy", Group::mutant, do_nothing);
  add("not_so_honest", Group::standard, do_nothing);
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, ExitCode::wrong);
  EXPECT_THAT(outcome.text, HasSubstr("rejected: not_so_honest:fp32\n"));
}

TEST_F(Selftest, RepeatsACaseOnTheGpuThatItWasFoundOn) {
  add("lazy", Group::mutant, do_nothing, DeviceKind::cuda);
  add("honest", Group::standard, convolve_on_host, DeviceKind::cuda);
  const testing::ScratchFolder scratch;
  line_.device = {DeviceChoice::Kind::cuda, 1};
  line_.report.json = scratch.path() / "report.json";
  run([&] { return fake_gpu(1); });
  for (const CaseResult& result : read_report(line_.report.json).cases)
    EXPECT_EQ(result.repeat, "convmish-bench selftest --device cuda:1 --seed 42");
}

TEST_F(Selftest, MeasuresTheDeviceOnce) {
  add("lazy", Group::mutant, do_nothing, DeviceKind::cuda);
  add("honest", Group::standard, convolve_on_host, DeviceKind::cuda);
  const testing::ScratchFolder scratch;
  const auto log = scratch.path() / "measurements";  // each process measures for itself
  line_.device = {DeviceChoice::Kind::cuda};
  run([&] {
    auto device = fake_gpu(0);
    device->rates = [log] {
      std::ofstream(log, std::ios::app) << '.';
      return MeasuredCeilings{.rates = {.dram_bytes = 1e12}, .gap = {}};
    };
    return device;
  });
  EXPECT_EQ(std::filesystem::file_size(log), 1U);
}

TEST_F(Selftest, RefusesToProveNothing) {
  add("honest", Group::standard, convolve_on_host);
  EXPECT_THROW(run(), EnvironmentError);
  ::testing::internal::GetCapturedStdout();
}

}  // namespace
}  // namespace convmish
