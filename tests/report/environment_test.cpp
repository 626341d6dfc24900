#include "report/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace convmish {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string quoted(std::vector<const char*> arguments) {
  return command_line(arguments);
}

TEST(HostEnvironment, KnowsBuildAndHost) {
  const std::array arguments{"/somewhere/build/convmish-bench", "--variant", "all"};
  const Environment environment = host_environment(arguments);
  EXPECT_EQ(environment.command_line, "convmish-bench --variant all");
  EXPECT_THAT(environment.tool_version, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(environment.git_revision, MatchesRegex("[0-9A-Za-z._-]+"));
  EXPECT_THAT(environment.compiler, MatchesRegex("[A-Za-z]+ [0-9].*"));
  EXPECT_FALSE(environment.build_type.empty());
  EXPECT_THAT(environment.operating_system, HasSubstr("Linux"));
  EXPECT_THAT(environment.started_at, MatchesRegex("20[0-9-]{8}T[0-9:]{8}Z"));
}

TEST(CommandLine, SplitsBackInAShell) {
  EXPECT_EQ(quoted({}), "convmish-bench");
  EXPECT_EQ(quoted({"./x", "--shape", "n1c3h5w5k7", "--json=a.json"}),
            "convmish-bench --shape n1c3h5w5k7 --json=a.json");
  EXPECT_EQ(quoted({"x", "--variant", "cudnn_*"}), "convmish-bench --variant 'cudnn_*'");
  EXPECT_EQ(quoted({"x", "my file", "", "it's", "$HOME"}), "convmish-bench 'my file' '' 'it'\\''s' '$HOME'");
}

TEST(CpuModel, IsTheFirstOfCpuinfo) {
  EXPECT_EQ(
      cpu_model(
          "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Xeon(R) Platinum 8480C\nmodel name\t: other\n"),
      "Xeon(R) Platinum 8480C");
  EXPECT_EQ(cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\n"), "");  // as on many Arm machines
  EXPECT_EQ(cpu_model("model name\t:\n"), "");
  EXPECT_EQ(cpu_model(""), "");
}

TEST(UtcTimestamp, IsIso8601) {
  EXPECT_EQ(utc_timestamp(std::chrono::system_clock::from_time_t(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_timestamp(std::chrono::system_clock::from_time_t(1'770'091'506)), "2026-02-03T04:05:06Z");
}

}  // namespace
}  // namespace convmish
