// Is the device's reference right? The host computes some of its outputs by another route.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "check/accumulator.hpp"
#include "check/fill.hpp"

namespace convmish {

/// The outputs to compare, in ascending order: all corners of y, and others drawn from `seed`, `count` in all
/// or every output of a smaller shape. Only their indices are set.
std::vector<ReferencePoint> sample_outputs(const Shape& shape, std::uint64_t seed, std::int64_t count = 4096);

/// Compares z and s of `samples` with a float64 sum over inputs that the host draws itself. Throws
/// EnvironmentError where they disagree: then no verdict of this device can be believed.
void cross_check_reference(const FillSpec& spec, std::span<const ReferencePoint> samples);

}  // namespace convmish
