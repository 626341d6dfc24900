#include "report/environment.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "git_revision.hpp"
#include "report/report.hpp"

namespace convmish {
namespace {

/// Files of /proc have no size to go by: read to the end. Empty where there is no such file.
std::string contents_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What follows `separator` in the first line of `text` that starts with `key`; empty if there is none.
std::string_view value_of(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto at = line.find(separator);
    if (!line.starts_with(key) || at == std::string_view::npos) continue;
    std::string_view value = line.substr(at + 1);
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(" \t\"")));
    value.remove_suffix(value.size() - (value.find_last_not_of(" \t\"") + 1));
    return value;
  }
  return {};
}

/// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"; no host name.
std::string operating_system() {
  std::string text(value_of(contents_of("/etc/os-release"), "PRETTY_NAME", '='));
  utsname kernel;
  if (::uname(&kernel) == 0) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
  }
  return text;
}

std::string quoted(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(argument);
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return text + "'";
}

}  // namespace

void add_device(Environment& environment, const Environment& of_device) {
  environment.device = of_device.device;
  environment.driver = of_device.driver;
  environment.cuda_runtime = of_device.cuda_runtime;
  environment.cuda_compiler = of_device.cuda_compiler;
  environment.cudnn = of_device.cudnn;
  environment.onednn = of_device.onednn;
}

std::string command_line(std::span<const char* const> arguments) {
  std::string line(kToolName);
  for (const char* const argument : arguments.subspan(std::min<std::size_t>(1, arguments.size())))
    line += " " + quoted(argument);
  return line;
}

std::string cpu_model(std::string_view cpuinfo) {
  return std::string(value_of(cpuinfo, "model name", ':'));
}

std::string utc_timestamp(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

Environment host_environment(std::span<const char* const> arguments) {
  Environment environment;
  environment.host_cpu = cpu_model(contents_of("/proc/cpuinfo"));
  environment.operating_system = operating_system();
  environment.compiler = CONVMISH_COMPILER;
  environment.cuda_compiler = CONVMISH_CUDA_COMPILER;
  environment.build_type = CONVMISH_BUILD_TYPE;
  environment.tool_version = CONVMISH_VERSION;
  environment.git_revision = CONVMISH_GIT_REVISION;
  environment.command_line = command_line(arguments);
  environment.started_at = utc_timestamp(std::chrono::system_clock::now());
  return environment;
}

}  // namespace convmish
