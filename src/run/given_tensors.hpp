// Tensors from elsewhere, a framework say: is their y right?
//
// Either all of them come from there, or only y does and the others are a fill's, which the device draws
// itself.
#pragma once

#include <vector>

#include "core/device.hpp"
#include "run/verify.hpp"

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

/// Judges `y`, in the memory order of the layout, as computed from the operands of `spec`: by the rules that
/// hold for a variant on that fill. There is no second run to be repeated. Throws OutOfMemory, and
/// EnvironmentError where the device's reference is wrong.
FillResult verify_output(Device& device, const FillSpec& spec, const std::vector<float>& y,
                         const Computation& computation);

}  // namespace convmish
