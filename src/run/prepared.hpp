// A variant's plan together with the memory that it uses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "run/inputs.hpp"

namespace convmish {

/// Two words that no right output consists of: a quiet NaN with a payload, and a large finite float, so that
/// a sum into the output (rather than a store) differs between two runs even where NaN would stay NaN.
inline constexpr std::uint32_t kPoison = 0x7fc0dead, kOtherPoison = 0x7149f2ca;

/// Memory that all variants of a shape take turns with: the output, and the largest workspace so far.
class SharedOutput {
 public:
  SharedOutput(Device& device, const Shape& shape);

  float* y() { return y_->floats(); }
  std::size_t y_bytes() const { return y_->bytes(); }
  void* workspace(std::size_t bytes);
  void release_workspace() { workspace_.reset(); }

  /// Overwrites y and the workspace with `word`, so that what a launch does not write shows.
  void poison(std::uint32_t word);
  std::uint32_t poison_word() const { return poison_word_; }  // the last one
  std::optional<std::string> damage();
  /// Lays the guard zones anew, where damage() has found them written to.
  void restore();

 private:
  Device& device_;
  std::unique_ptr<Buffer> y_, workspace_;
  std::uint32_t poison_word_ = 0;
};

class PreparedVariant final : public PlanMemory {
 public:
  enum class Purpose { timing, check_only, description };  // description: it is never launched

  /// Asks whether the variant takes this shape, then prepares it, in one of its configurations where it is
  /// not to follow its rule. Throws Unsupported, OutOfMemory, DeviceError, or whatever the variant throws.
  PreparedVariant(Device& device, const Variant& variant, Inputs& inputs, SharedOutput& output,
                  Purpose purpose, const std::string& configuration = {});

  const Variant& variant() const { return variant_; }
  const Plan& plan() const { return plan_; }
  double prepare_ms() const { return prepare_ms_; }
  std::int64_t plan_bytes() const;

  void launch(const float* x);
  /// See Plan::recomputed_outputs: of the launches since the last call, for which it waits.
  std::optional<std::int64_t> take_recomputed_outputs();
  /// What was written beside the plan's memory, by whomever.
  std::optional<std::string> damage();
  /// Lays the guard zones of the plan's memory anew. What is in it is the variant's own.
  void restore();

  void* allocate(std::size_t bytes) override;  // PlanMemory

 private:
  Device& device_;
  const Variant& variant_;
  SharedOutput& output_;
  std::vector<std::unique_ptr<Buffer>> memory_;
  Plan plan_;
  double prepare_ms_ = 0;
};

/// What has been done to inputs or output, or beside them; nothing if all is as it was.
std::optional<std::string> damage_of(std::span<Inputs* const> inputs, SharedOutput& output);
/// The same, or beside the memory of the plan.
std::optional<std::string> damage_of(std::span<Inputs* const> inputs, SharedOutput& output,
                                     PreparedVariant& prepared);

}  // namespace convmish
