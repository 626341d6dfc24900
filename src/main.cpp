// argv in, exit code out: the only place where devices and commands meet, and the only catch-all.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "core/registry.hpp"
#include "report/environment.hpp"

namespace convmish {
namespace {

DeviceFactories device_factories() {
  DeviceFactories factories{.cpu = make_cpu_device, .cuda = {}};
#if defined(CONVMISH_HAVE_CUDA)
  factories.cuda = make_cuda_device;
#endif
  return factories;
}

void print_version(std::span<const char* const> arguments) {
  const Environment environment = host_environment(arguments);
  fmt::print("convmish-bench {}{}\n", environment.tool_version,
             environment.git_revision.empty() ? "" : fmt::format(" ({})", environment.git_revision));
}

/// A name used twice is a mistake in the build: no result could be told apart.
void refuse_broken_registry() {
  const auto& problems = Registry::instance().problems();
  if (!problems.empty()) throw EnvironmentError(problems.front());
}

ExitCode run(std::span<const char* const> arguments) {
  const CommandLine line = parse_command_line(arguments);
  switch (line.verb) {
    case Verb::help:
      fmt::print("{}", help_text());
      return ExitCode::ok;
    case Verb::version:
      print_version(arguments);
      return ExitCode::ok;
    case Verb::list:
      refuse_broken_registry();
      return command_list(device_factories());
    case Verb::selftest:
      refuse_broken_registry();
      return command_selftest(line, device_factories());
    case Verb::draw:
      return command_draw(line, device_factories());
    case Verb::verify:
      return command_verify(line, device_factories());
    case Verb::compare:
      return command_compare(line);
    case Verb::calibrate:
      return command_calibrate(line, device_factories());
    case Verb::explain:
      refuse_broken_registry();
      return command_explain(line, device_factories());
    case Verb::run:
      refuse_broken_registry();
      return command_run(line, device_factories());
  }
  throw std::logic_error("a verb without a command");
}

/// A standard descriptor that is closed would be given to the next file or socket, and printed into.
void occupy_standard_descriptors() {
  int descriptor;
  do descriptor = ::open("/dev/null", O_RDWR);
  while (0 <= descriptor && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace
}  // namespace convmish

int main(int argc, char** argv) {
  using namespace convmish;
  // A reader that goes away, as in `| head`, ends the tool quietly, whatever the parent process had set.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that may not grow any more fails to be written, which is told, and cleaned up after.
  std::signal(SIGXFSZ, SIG_IGN);
  const bool is_output_open = ::fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  occupy_standard_descriptors();
  // Now, and not as for a full disk at the end: no run, and no report, should be for nothing.
  if (!is_output_open)
    return static_cast<int>(
        report_failure(ExitCode::usage,
                       "standard output is closed; want it open, or > /dev/null to discard what is printed"));

  ExitCode code = ExitCode::environment;
  try {
    code = run({argv, static_cast<std::size_t>(argc)});
    if (std::fflush(stdout) != 0)
      code = report_failure(worse(code, ExitCode::usage),
                            fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  } catch (const InputError& error) {
    code = report_failure(ExitCode::usage, error.what());
  } catch (const EnvironmentError& error) {
    code = report_failure(ExitCode::environment, error.what());
  } catch (const std::bad_alloc&) {
    code = report_failure(ExitCode::environment, "out of host memory");
  } catch (const std::system_error& error) {  // what printing throws, too
    code = std::ferror(stdout) != 0
               ? report_failure(ExitCode::usage,
                                fmt::format("standard output cannot be written: {}", error.code().message()))
               : report_failure(ExitCode::environment, fmt::format("unexpected: {}", error.what()));
  } catch (const std::exception& error) {
    // Nothing is known about any variant then, so this is not 1 or 5: the tool or the machine misbehaves.
    code = report_failure(ExitCode::environment, fmt::format("unexpected: {}", error.what()));
  } catch (...) {
    code = report_failure(ExitCode::environment, "unexpected: an exception of unknown type");
  }
  return static_cast<int>(code);
}
