#include "run/inputs.hpp"

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

Inputs::Inputs(Device& device, Fill fill, std::uint64_t seed, const Shape& shape)
    : device_(device), spec_(fill_spec(fill, seed, shape)) {}

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

void Inputs::redraw_x(std::uint64_t seed) {
  spec_.seed = seed;
  for (Held& held : held_) {
    if (held.tensor != Tensor::x) continue;
    device_.draw_tensor(spec_, held.tensor, held.layout, held.buffer->floats());
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
}

std::optional<std::string> Inputs::damage() {
  for (Held& held : held_) {
    const std::string name = name_of(held.tensor);
    if (const auto zone = held.buffer->damage(); zone != Buffer::Damage::none)
      return "wrote " + std::string(zone == Buffer::Damage::before ? "before" : "past") + " " + name;
    if (device_.checksum(held.buffer->data(), held.buffer->bytes()) != held.checksum)
      return "changed " + name;
  }
  return std::nullopt;
}

}  // namespace convmish
