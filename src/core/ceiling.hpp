// What a device can reach, and the least time that it allows a shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

/// Rates per second; absent where not known. A multiply-add is two FLOPs. Measured on this device by the
/// tool, except for the tensor pipes, which are counted on paper: multiprocessors x highest clock x the
/// architecture's dense rate.
struct Ceilings {
  std::optional<double> dram_bytes;  // a device copy, bytes read plus bytes written
  std::optional<double> ffma_flops;
  std::optional<double> tensor_tf32_flops;
  std::optional<double> tensor_fp16_flops;
  std::optional<double> special_functions;  // exponentials or reciprocals
};

/// Work that a shape asks of one ceiling.
struct Demand {
  std::string ceiling;         // dram, ffma, tensor_tf32, tensor_fp16 or special_function
  double amount = 0;           // bytes, FLOPs or operations
  std::optional<double> rate;  // the ceiling, a second

  std::optional<double> floor_ms() const { return rate ? std::optional(1e3 * amount / *rate) : std::nullopt; }
};

/// Least bytes, FLOPs x products of the pipe, special functions. A transform, or a pipe that a library
/// chooses, has no arithmetic demand.
std::vector<Demand> demands(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                            const Ceilings& ceilings);

struct Floor {
  double ms = 0;
  std::string binding_ceiling;  // that of the demand which takes longest
};

/// The largest of the demands' floors. Nothing where no rate is known.
std::optional<Floor> floor_of(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                              const Ceilings& ceilings);

}  // namespace convmish
