// Which of a variant's configurations a shape is run with.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/plan.hpp"
#include "core/result.hpp"
#include "core/tuning_table.hpp"
#include "run/prepared.hpp"

namespace convmish {

struct ConfigurationOptions {
  std::string asked;  // of each variant that has one of this name; empty: of none
  bool tune = false;  // measure instead of asking the table
  TuningTable table{};
};

/// By request, by the table, by the variant's rule, in this order. Nothing where the variant has no
/// configurations. Throws Unsupported where none can compute the shape.
std::optional<ConfigurationChoice> choose_configuration(const Variant& variant, const Shape& shape,
                                                        const DeviceInfo& device,
                                                        const ConfigurationOptions& options);

/// Times every configuration that can compute the inputs' shape, side by side as variants are timed, and
/// takes the fastest. `before_launch` is told of each. Throws Unsupported where there is none, and what the
/// last one to fail threw where all did.
ConfigurationChoice tune(Device& device, const Variant& variant, Inputs& inputs, SharedOutput& output,
                         const TimingOptions& timing, const std::function<void()>& before_launch);

/// Empty where there is none.
std::string name_of(const std::optional<ConfigurationChoice>& choice);

/// A plan's note with how its configuration was chosen: "4x32 outputs a block; from the tuning table".
std::string note_with_choice(const std::string& note, const std::optional<ConfigurationChoice>& choice);

}  // namespace convmish
