#include "core/ceiling.hpp"

namespace convmish {
namespace {

// Two Mishes need an exponential and a reciprocal each, of which one reciprocal can be saved by algebra.
constexpr double kSpecialFunctionsPerOutput = 3;

// How far a device may exceed its data sheet, and no kernel be to blame.
// Arithmetic: sheets count with a boost clock, and GPUs run above it. H100 and H200 tensor rates are told for
// 1.83 GHz, their clock goes to 1.98 (8 %); a GeForce RTX 4090's for 2.52 GHz, and it was overclocked to 3.15
// (25 %).
constexpr double kClockMargin = 1.3;
// Memory: rounded on the sheet; that of a GeForce is overclocked by up to a tenth.
constexpr double kMemoryMargin = 1.1;

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

/// The longest of the times that the demands take.
std::optional<Floor> longest(const std::vector<Demand>& demands) {
  std::optional<Floor> floor;
  for (const Demand& demand : demands)
    if (const auto ms = demand.floor_ms(); ms && *ms > 0 && (!floor || *ms > floor->ms))
      floor = Floor{*ms, demand.ceiling};
  return floor;
}

}  // namespace

Ceilings DeviceCeilings::best() const {
  Ceilings best = measured.rates;
  for (const auto rate : kCeilingRates)
    if (!(best.*rate)) best.*rate = data_sheet.*rate;
  return best;
}

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
  return longest(demands(shape, pipe, products, algorithm, ceilings));
}

std::optional<Floor> least_possible(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                                    const Ceilings& data_sheet, std::int64_t l2_bytes) {
  std::vector<Demand> least = demands(shape, pipe, products, algorithm, data_sheet);
  for (Demand& demand : least)
    demand.amount = demand.ceiling == "dram"
                        ? (demand.amount - 2 * static_cast<double>(l2_bytes)) / kMemoryMargin
                        : demand.amount / kClockMargin;
  return longest(least);
}

}  // namespace convmish
