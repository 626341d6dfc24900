// What a device can reach, and the least time that it allows a shape.
#pragma once

#include <optional>
#include <string>

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

struct Floor {
  double ms = 0;
  std::string binding_ceiling;  // dram, ffma, tensor_tf32, tensor_fp16 or special_function
};

/// The largest of: least bytes / bandwidth, FLOPs x products / the pipe's rate, special functions / rate.
/// A transform, or a pipe that a library chooses, has no arithmetic floor. Nothing where no rate is known.
std::optional<Floor> floor_of(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                              const Ceilings& ceilings);

}  // namespace convmish
