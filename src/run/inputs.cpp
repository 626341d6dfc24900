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
  changed_row_.reset();
  for (Held& held : held_) {
    if (held.tensor != Tensor::x) continue;
    device_.draw_tensor(spec_, held.tensor, held.layout, held.buffer->floats());
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
}

void Inputs::restore() {
  for (Held& held : held_) {
    device_.draw_tensor(spec_, held.tensor, held.layout, held.buffer->floats());
    held.checksum = device_.checksum(held.buffer->data(), held.buffer->bytes());
  }
}

void Inputs::redraw_row(std::uint64_t seed) {
  FillSpec other = spec_;
  other.seed = seed;
  const Shape& s = spec_.shape;
  const auto n = static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(s.n));
  // Not the first or last row, which some filters never reach to.
  const auto row = 1 + static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(s.p()));
  changed_row_ = {n, row, seed};
  for (Held& held : held_) {
    if (held.tensor != Tensor::x) continue;
    const bool by_channel = held.layout == Layout::nchw;  // then a row is one piece a channel, else a column
    const std::int64_t pieces = by_channel ? s.c : s.w;
    std::vector<float> piece(static_cast<std::size_t>(by_channel ? s.w : s.c));
    for (std::int64_t i = 0; i < pieces; ++i) {
      for (std::size_t j = 0; j < piece.size(); ++j) {
        const auto within = static_cast<std::int64_t>(j);
        const std::int64_t c = by_channel ? i : within, column = by_channel ? within : i;
        piece[j] = draw(other, Tensor::x, ((n * s.c + c) * s.h + row) * s.w + column);
      }
      const std::int64_t at =
          x_strides(held.layout, s).offset(n, by_channel ? i : 0, row, by_channel ? 0 : i);
      device_.upload(held.buffer->floats() + at, piece.data(), piece.size() * sizeof(float));
    }
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
