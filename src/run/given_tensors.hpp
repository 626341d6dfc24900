// Tensors from elsewhere, a framework say: is their y right?
#pragma once

#include <vector>

#include "core/device.hpp"

namespace convmish {

/// In the host's memory and logical order: x n c h w, filter k c 3 3, bias k, y n k p q.
struct GivenTensors {
  Shape shape;
  std::vector<float> x, filter, bias, y;
};

/// Judges y by the strict rule, as computed in the rounding of `math` by a direct algorithm, against the
/// device's float64 reference. The result has no fill. R is not taken: its limits hold for the fill `normal`
/// only. Throws OutOfMemory.
FillResult verify_tensors(Device& device, const GivenTensors& tensors, MathClass math);

}  // namespace convmish
