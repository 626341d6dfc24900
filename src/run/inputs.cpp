#include "run/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "check/tensor_view.hpp"

namespace convmish {
namespace {

constexpr const char* name_of(Tensor tensor) {
  switch (tensor) {
    case Tensor::x:
      return "x";
    case Tensor::filter:
      return "filter";
    case Tensor::bias:
      break;
  }
  return "bias";
}

}  // namespace

std::optional<std::string> stray_write(Buffer& buffer, std::string_view name) {
  switch (buffer.damage()) {
    case Buffer::Damage::none:
      return std::nullopt;
    case Buffer::Damage::before:
      return fmt::format("wrote before {}", name);
    case Buffer::Damage::after:
      break;
  }
  return fmt::format("wrote past {}", name);
}

Inputs::Inputs(Device& device, Fill fill, std::uint64_t seed, const Shape& shape)
    : device_(device), spec_(fill_spec(fill, seed, shape)) {}

const float* Inputs::undrawn_x() {
  if (!undrawn_x_)
    undrawn_x_ = device_.allocate(sizeof(float) * static_cast<std::size_t>(spec_.shape.x_elements()));
  return undrawn_x_->floats();
}

const float* Inputs::tensor(Tensor tensor, Layout layout) {
  for (const Held& held : held_)
    if (held.tensor == tensor && held.layout == layout) return held.buffer->floats();
  const auto bytes = sizeof(float) * static_cast<std::size_t>(tensor_dims(spec_.shape, tensor).count());
  auto buffer = device_.allocate(bytes);
  device_.draw_tensor(spec_, tensor, layout, buffer->floats());
  const std::uint64_t checksum = device_.checksum(buffer->data(), bytes);
  held_.push_back({tensor, layout, std::move(buffer), checksum});
  return held_.back().buffer->floats();
}

void Inputs::redraw_x(Fill fill, std::uint64_t seed) {
  spec_ = fill_spec(fill, seed, spec_.shape);
  changed_element_.reset();
  for (Held& held : held_) {
    if (held.tensor != Tensor::x) continue;
    device_.draw_tensor(spec_, held.tensor, held.layout, held.buffer->floats());
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
}

void Inputs::restore() {
  for (Held& held : held_) {
    held.buffer->lay_guards();
    device_.draw_tensor(spec_, held.tensor, held.layout, held.buffer->floats());
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
  if (changed_element_) write_x(changed_element_->index, changed_element_->value);
}

void Inputs::change_element(std::uint64_t random) {
  if (changed_element_) write_x(changed_element_->index, draw(spec_, Tensor::x, changed_element_->index));
  const Shape& s = spec_.shape;
  const auto pick = [&random](std::int64_t count) {
    const auto picked = static_cast<std::int64_t>(random % static_cast<std::uint64_t>(count));
    random /= static_cast<std::uint64_t>(count);
    return picked;
  };
  const std::int64_t column = 1 + pick(s.q()), row = 1 + pick(s.p()), plane = pick(s.n * s.c);
  const float drawn = spec_.fill == Fill::wide ? 0x1p20f : 1;  // about the largest
  // Of all the products' sum: beyond what any class rounds, about three times for bf16.
  constexpr float kShare = 1.0f / 256;
  const auto products = static_cast<float>(std::bit_ceil(static_cast<std::uint64_t>(s.c * kTaps)));
  changed_element_ = {(plane * s.h + row) * s.w + column, drawn * std::max(2.0f, kShare * products)};
  write_x(changed_element_->index, changed_element_->value);
}

void Inputs::write_x(std::int64_t index, float value) {
  const TensorDims dims = tensor_dims(spec_.shape, Tensor::x);
  for (Held& held : held_) {
    if (held.tensor != Tensor::x) continue;
    const Strides to = strides(held.layout, dims.channels, dims.rows, dims.columns);
    device_.upload(held.buffer->floats() + dims.offset(to, index), &value, sizeof value);
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
}

std::optional<std::string> Inputs::damage() {
  for (Held& held : held_) {
    const std::string name = name_of(held.tensor);
    if (auto stray = stray_write(*held.buffer, name)) return stray;
    if (device_.checksum(held.buffer->data(), held.buffer->bytes()) != held.checksum)
      return "changed " + name;
  }
  return std::nullopt;
}

}  // namespace convmish
