// The host's part of a report's environment; Device::describe() adds the device's.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace convmish {

/// Everything known without a device: CPU, operating system, compilers, build, tool, command line, and now
/// as the start. `arguments` is main's argv, the program's name first.
Environment host_environment(std::span<const char* const> arguments);

/// Copies into `environment` what only the process that opened the device knows.
void add_device(Environment& environment, const Environment& of_device);

/// One line that a POSIX shell splits back into `arguments`. The program appears by the tool's own name.
std::string command_line(std::span<const char* const> arguments);

/// The processor's name in the text of /proc/cpuinfo; empty where it gives none.
std::string cpu_model(std::string_view cpuinfo);

/// "2026-02-03T04:05:06Z".
std::string utc_timestamp(std::chrono::system_clock::time_point time);

}  // namespace convmish
