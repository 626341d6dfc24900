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

std::vector<Demand> demands(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                            const Ceilings& ceilings) {
  std::vector<Demand> all{{"dram", shape.least_bytes(), ceilings.dram_bytes}};
  if (algorithm == Algorithm::direct && pipe != Pipe::unknown)
    all.push_back({std::string(to_string(pipe)), shape.flops() * products, pipe_rate(ceilings, pipe)});
  all.push_back({"special_function", static_cast<double>(shape.y_elements()) * kSpecialFunctionsPerOutput,
                 ceilings.special_functions});
  return all;
}

std::optional<Floor> floor_of(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                              const Ceilings& ceilings) {
  std::optional<Floor> floor;
  for (Demand& demand : demands(shape, pipe, products, algorithm, ceilings))
    if (const auto ms = demand.floor_ms(); ms && (!floor || *ms > floor->ms))
      floor = Floor{*ms, std::move(demand.ceiling)};
  return floor;
}

}  // namespace convmish
