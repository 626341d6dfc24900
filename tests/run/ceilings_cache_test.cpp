// What was measured is kept for the same GPU, driver and tool, and never trusted beyond them.
#include "worker/ceilings_cache.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "core/data_sheet.hpp"
#include "core/error.hpp"
#include "report/json.hpp"
#include "tests/report/scratch_folder.hpp"
#include "tests/run/fake_device.hpp"

namespace convmish {
namespace {

constexpr Ceilings kFirst{.dram_bytes = 4.2e12, .ffma_flops = 6e13, .special_functions = 4e12};
constexpr Ceilings kSecond{.dram_bytes = 4.1e12, .ffma_flops = 5e13, .special_functions = 3e12};

class KeptCeilings : public ::testing::Test {
 protected:
  KeptCeilings() {
    device_.looks.name = "NVIDIA H200";
    device_.looks.uuid = "GPU-1234";
    device_.rates = [this] {
      ++measurements_;
      return reaches_;
    };
  }

  DeviceCeilings look_up() { return look_up_ceilings(device_, tool_, {folder_, reuse_}); }
  /// Whether another look-up takes what the first one measured.
  bool is_kept() {
    reaches_.rates = kSecond;
    return look_up().measured.rates.dram_bytes == kFirst.dram_bytes;
  }
  std::filesystem::path file() const { return folder_ / "ceilings-GPU-1234.json"; }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  std::string read() const { return (std::ostringstream() << std::ifstream(file()).rdbuf()).str(); }

  testing::ScratchFolder scratch_;
  std::filesystem::path folder_ = scratch_.path() / "not" / "there" / "yet";
  bool reuse_ = true;
  Environment tool_{
      .driver = "580", .tool_version = "1.2.3", .git_revision = "abc", .started_at = "2026-01-01"};
  FakeDevice device_;
  MeasuredCeilings reaches_{.rates = kFirst, .gap = {}};
  int measurements_ = 0;
};

TEST_F(KeptCeilings, AreMeasuredOnce) {
  EXPECT_EQ(look_up().measured.rates.ffma_flops, kFirst.ffma_flops);
  tool_.started_at = "2026-02-02";
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(look_up().measured_at, "2026-01-01");
  EXPECT_EQ(measurements_, 1);
}

TEST_F(KeptCeilings, ComeWithTheDataSheetOfTheName) {
  EXPECT_EQ(look_up().data_sheet.dram_bytes, data_sheet_of("NVIDIA H200").dram_bytes);
  device_.looks.name = "NVIDIA H200 NVL";
  EXPECT_FALSE(look_up().data_sheet.dram_bytes);
}

TEST_F(KeptCeilings, AreThoseOfTheSameGpuDriverAndTool) {
  look_up();
  const Environment same = tool_;
  device_.looks.uuid = "GPU-5678";
  EXPECT_FALSE(is_kept());
  device_.looks.uuid = "GPU-1234";
  for (std::string Environment::*changed :
       {&Environment::driver, &Environment::tool_version, &Environment::git_revision}) {
    reaches_.rates = kFirst;
    tool_ = same;
    look_up();
    tool_.*changed = "another";
    EXPECT_FALSE(is_kept());
  }
}

TEST_F(KeptCeilings, AreMeasuredAnewOnRequestAndThenKept) {
  look_up();
  reuse_ = false;
  EXPECT_FALSE(is_kept());
  reuse_ = true;
  EXPECT_EQ(look_up().measured.rates.dram_bytes, kSecond.dram_bytes);
  EXPECT_EQ(measurements_, 2);
}

TEST_F(KeptCeilings, AreNotKeptWithAGap) {
  reaches_.gap = "tensor rates not measured: no cuBLAS today";
  EXPECT_EQ(look_up().measured.gap, "tensor rates not measured: no cuBLAS today");
  reaches_.gap = "";
  EXPECT_EQ(look_up().measured.gap, "");
  EXPECT_EQ(measurements_, 2);
}

TEST_F(KeptCeilings, AreKeptWithTheGapOfTheBuildUntilAnotherBuildClosesIt) {
  device_.gap_of_build = reaches_.gap = "tensor rates not measured: no cuBLAS headers";
  look_up();
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(look_up().measured.gap, device_.gap_of_build);
  device_.gap_of_build = reaches_.gap = "";
  EXPECT_FALSE(is_kept());
}

TEST_F(KeptCeilings, AreMeasuredAnewWhereTheFileIsBroken) {
  look_up();
  const std::string whole = read();
  std::string not_a_rate = whole;
  not_a_rate.replace(not_a_rate.find("4200000000000.0"), 15, "0");
  Report without_ceilings;
  without_ceilings.environment = tool_;
  without_ceilings.environment.device.uuid = "GPU-1234";
  for (const std::string& broken : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                                    not_a_rate, to_json(without_ceilings)}) {
    write(broken);
    EXPECT_FALSE(is_kept()) << broken;
    EXPECT_NE(read(), broken) << "it was not replaced";
  }
}

TEST_F(KeptCeilings, NeedNoFolderThatCanBeWritten) {
  std::ofstream(scratch_.path() / "file");
  for (const std::filesystem::path& folder : {std::filesystem::path(), scratch_.path() / "file" / "in_it"}) {
    folder_ = folder;
    EXPECT_EQ(look_up().measured.rates.dram_bytes, kFirst.dram_bytes);
  }
  EXPECT_EQ(measurements_, 2);
  EXPECT_FALSE(std::filesystem::exists("ceilings-GPU-1234.json"));
}

TEST_F(KeptCeilings, AreNotKeptForADeviceThatCannotBeToldFromAnother) {
  device_.looks.uuid = "";
  look_up();
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(KeptCeilings, AreNotNeededToGoOn) {
  device_.rates = []() -> MeasuredCeilings { throw OutOfMemory(4096, 1024); };
  const DeviceCeilings ceilings = look_up();
  EXPECT_EQ(ceilings.measured.gap, "ceilings not measured: needs 4096 bytes of device memory, 1024 are free");
  EXPECT_EQ(ceilings.measured_at, "");
  EXPECT_TRUE(ceilings.data_sheet.dram_bytes);
  EXPECT_FALSE(std::filesystem::exists(folder_));
  device_.rates = []() -> MeasuredCeilings { throw EnvironmentError("a bit flipped"); };
  EXPECT_THROW(look_up(), EnvironmentError);
}

/// A variable of the environment that is at the end of a scope what it was before.
class ScopedVariable {
 public:
  explicit ScopedVariable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }

  /// Null: not in the environment.
  void set(const char* value) const { value ? ::setenv(name_, value, /*overwrite=*/1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(UserCacheFolder, FollowsTheXdgSpecification) {
  const ScopedVariable xdg("XDG_CACHE_HOME"), home_variable("HOME");
  const auto folder = [&](const char* cache, const char* home) {
    xdg.set(cache);
    home_variable.set(home);
    return user_cache_folder().string();
  };
  EXPECT_EQ(folder("/c", "/h"), "/c/convmish-bench");
  EXPECT_EQ(folder("relative", "/h"), "/h/.cache/convmish-bench");
  EXPECT_EQ(folder("", "/h"), "/h/.cache/convmish-bench");
  EXPECT_EQ(folder(nullptr, nullptr), "");
}

}  // namespace
}  // namespace convmish
