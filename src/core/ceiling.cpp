#include "core/ceiling.hpp"

namespace convmish {
namespace {

// Two Mishes need an exponential and a reciprocal each, of which one reciprocal can be saved by algebra.
constexpr double kSpecialFunctionsPerOutput = 3;

std::optional<double> pipe_rate(const Ceilings& ceilings, Pipe pipe) {
  switch (pipe) {
    case Pipe::ffma:
      return ceilings.ffma_flops;
    case Pipe::tensor_tf32:
      return ceilings.tensor_tf32_flops;
    case Pipe::tensor_fp16:
      return ceilings.tensor_fp16_flops;
    case Pipe::unknown:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Floor> floor_of(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                              const Ceilings& ceilings) {
  std::optional<Floor> floor;
  const auto raise = [&floor](double work, std::optional<double> rate, std::string name) {
    if (!rate) return;
    const double ms = 1e3 * work / *rate;
    if (!floor || ms > floor->ms) floor = Floor{ms, std::move(name)};
  };
  raise(shape.least_bytes(), ceilings.dram_bytes, "dram");
  if (algorithm == Algorithm::direct)
    raise(shape.flops() * products, pipe_rate(ceilings, pipe), std::string(to_string(pipe)));
  raise(static_cast<double>(shape.y_elements()) * kSpecialFunctionsPerOutput, ceilings.special_functions,
        "special_function");
  return floor;
}

}  // namespace convmish
