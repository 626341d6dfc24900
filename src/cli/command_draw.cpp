// `convmish-bench draw --tensors DIR --shape S`: the very tensors that a check of S would draw, as files.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/open_device.hpp"
#include "cli/tensor_files.hpp"
#include "core/shape_text.hpp"
#include "run/verify.hpp"

namespace convmish {

ExitCode command_draw(const CommandLine& line, const DeviceFactories& devices) {
  if (line.tensors.folders.size() != 1 || line.run.shapes.size() != 1)
    throw InputError("draw wants --tensors DIR and --shape SHAPE, one of each");
  const OpenedDevice opened = open_device(line.device, devices);
  const auto fills = line.run.fills.empty() ? default_fills() : line.run.fills;
  try {
    for (const Fill fill : fills) {
      Shape shape = line.run.shapes.front();
      shape.n = check_batch(shape, fill == fills.front());
      const auto folder = line.tensors.folders.front() / to_string(fill);
      write_operands(*opened.device, fill_spec(fill, line.run.seed, shape), folder);
      fmt::print("{}: {}\n", folder.string(), to_string(shape));
    }
  } catch (const OutOfMemory& error) {
    throw EnvironmentError(error.what());
  }
  return ExitCode::ok;
}

}  // namespace convmish
