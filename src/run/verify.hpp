// Is a variant right on one fill?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "run/mistakes.hpp"
#include "run/prepared.hpp"

namespace convmish {

/// The fills of a check unless others are asked for. One fill is not evidence: each can fail a mistake that
/// the others let pass.
std::vector<Fill> default_fills();

/// How many images a check of `fill` takes: all of them for the first fill of a check, for the others the
/// fewest that give about two million outputs.
std::int64_t check_batch(const Shape& shape, bool first);

/// The check of a fill that says nothing of an algorithm, as skipped; nothing where it does.
std::optional<FillResult> not_applicable(const FillSpec& spec, Algorithm algorithm);

/// Runs the prepared variant from poisoned outputs, twice, and judges what it wrote and what it touched.
/// Fills in the reference of `samples`, unless the check is skipped. Throws DeviceError or what the variant
/// throws.
FillResult verify(Device& device, PreparedVariant& prepared, Inputs& inputs, SharedOutput& output,
                  std::span<ReferencePoint> samples);

/// What a watched launch did wrong; nothing where all of its work was on its stream.
std::optional<std::string> disorder(Device::Ordering ordering);

/// How an output was computed, as far as its rule depends on it.
struct Computation {
  MathClass math = MathClass::fp32;
  Layout layout = Layout::nchw;
  Algorithm algorithm = Algorithm::direct;
};

/// y against the reference of `inputs.x` and the weights of `weights`, by the strict rule.
Comparison comparison_of(const Computation& computation, Inputs& inputs, Inputs& weights, const float* y);

/// The output as it stands, of a variant.
Comparison comparison_of(const PreparedVariant& prepared, Inputs& inputs, Inputs& weights,
                         SharedOutput& output);

/// Judges y by the comparison's rule, as one that was computed in the rounding of `declared`. The fill is the
/// caller's to tell. `poison`: the word that y was filled with before it was computed.
FillResult judge_comparison(Device& device, const Comparison& comparison, MathClass declared,
                            const OperandSource& operands, std::uint32_t poison,
                            std::span<ReferencePoint> samples = {});

/// Judges the output as it stands, computed from `inputs.x` and the weights of `weights`.
FillResult judge_output(Device& device, const PreparedVariant& prepared, Inputs& inputs, Inputs& weights,
                        SharedOutput& output, std::span<ReferencePoint> samples = {});

}  // namespace convmish
