#include "run/prepared.hpp"

#include <chrono>

#include "core/error.hpp"

namespace convmish {
SharedOutput::SharedOutput(Device& device, const Shape& shape)
    : device_(device), y_(device.allocate(sizeof(float) * static_cast<std::size_t>(shape.y_elements()))) {}

void* SharedOutput::workspace(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (!workspace_ || workspace_->bytes() < bytes) {
    workspace_.reset();  // before the larger one: both might not fit
    workspace_ = device_.allocate(bytes);
  }
  return workspace_->data();
}

void SharedOutput::poison(std::uint32_t word) {
  poison_word_ = word;
  device_.fill_words(y_->data(), y_->bytes(), word);
  if (workspace_) device_.fill_words(workspace_->data(), workspace_->bytes(), word);
}

std::optional<std::string> SharedOutput::damage() {
  if (auto damage = stray_write(*y_, "y")) return damage;
  return workspace_ ? stray_write(*workspace_, "the workspace") : std::nullopt;
}

void SharedOutput::restore() {
  y_->lay_guards();
  if (workspace_) workspace_->lay_guards();
}

PreparedVariant::PreparedVariant(Device& device, const Variant& variant, Inputs& inputs, SharedOutput& output,
                                 Purpose purpose, const std::string& configuration)
    : device_(device), variant_(variant), output_(output) {
  const Shape& shape = inputs.spec().shape;
  if (variant.supports)
    if (const auto reason = variant.supports(shape, device.info())) throw Unsupported(*reason);
  const Problem problem{.shape = shape,
                        .filter = inputs.filter(variant.layout),
                        .bias = inputs.bias(),
                        .x = purpose == Purpose::description ? inputs.undrawn_x() : inputs.x(variant.layout),
                        .y = output.y(),
                        .device = &device.info(),
                        .memory = this,
                        .stream = device.stream(),
                        .timed = purpose == Purpose::timing,
                        .configuration = configuration};
  device.synchronize();
  const auto start = std::chrono::steady_clock::now();
  plan_ = variant.prepare(problem);
  device.synchronize();
  prepare_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  output.workspace(plan_.workspace_bytes);  // now, not within a launch that is timed
}

std::int64_t PreparedVariant::plan_bytes() const {
  std::size_t total = 0;
  for (const auto& buffer : memory_) total += buffer->bytes();
  return static_cast<std::int64_t>(total);
}

void PreparedVariant::launch(const float* x) {
  plan_.launch({.x = x,
                .y = output_.y(),
                .workspace = output_.workspace(plan_.workspace_bytes),
                .stream = device_.stream()});
}

std::optional<std::int64_t> PreparedVariant::take_recomputed_outputs() {
  if (!plan_.recomputed_outputs) return std::nullopt;
  std::uint64_t count = 0;
  device_.synchronize();
  device_.download(&count, plan_.recomputed_outputs, sizeof count);
  device_.fill_words(plan_.recomputed_outputs, sizeof count, 0);
  return static_cast<std::int64_t>(count);
}

std::optional<std::string> PreparedVariant::damage() {
  for (const auto& buffer : memory_)
    if (auto damage = stray_write(*buffer, "memory of the plan of " + variant_.name)) return damage;
  return std::nullopt;
}

void PreparedVariant::restore() {
  for (const auto& buffer : memory_) buffer->lay_guards();
}

void* PreparedVariant::allocate(std::size_t bytes) {
  memory_.push_back(device_.allocate(bytes));
  return memory_.back()->data();
}

std::optional<std::string> damage_of(std::span<Inputs* const> inputs, SharedOutput& output) {
  for (Inputs* const set : inputs)
    if (auto damage = set->damage()) return damage;
  return output.damage();
}

std::optional<std::string> damage_of(std::span<Inputs* const> inputs, SharedOutput& output,
                                     PreparedVariant& prepared) {
  if (auto damage = damage_of(inputs, output)) return damage;
  return prepared.damage();
}

}  // namespace convmish
