// The GPU's activations against float64, over every float there is.
#pragma once

#include <cstdint>

namespace convmish {

/// Of one function over a range of inputs.
struct WorstError {
  double ulp = 0;  // units in the last place of the exact result
  float at = 0;    // the input that it belongs to
};

/// Of one activation over all 2^32 bit patterns.
struct ActivationErrors {
  /// Where the result is a normal float and x >= -86.9: farther down the activations may return 0.
  WorstError normal;
  /// Elsewhere, finite inputs: the error in units of the least normal float, 2^-126.
  double outside = 0;
  /// Mish of mish, by what src/check/acceptance.hpp allows for an exact z. Of the epilogues' above -20 only:
  /// farther down the rounding of the multiplicands is allowed for too, and is larger.
  double ratio = 0;
  /// Outputs that are NaN or infinite where the exact result is not, or the other way round.
  std::uint64_t wrong_kind = 0;
};

enum class Activation {
  mish,          // variants/common/mish.hpp
  mish_of_mish,  // the same
  epilogue,      // mish of mish in the tensor-core kernels, variants/common/hopper_mish.cuh; below 2^126
};

ActivationErrors measure_activation_errors(Activation activation);

}  // namespace convmish
