// The inputs of a check or a timing, drawn once on the device for all variants that share them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/fill.hpp"
#include "core/device.hpp"

namespace convmish {

/// A row of x, of one image and all of its channels, that is of another seed than the rest.
struct ChangedRow {
  std::int64_t n = 0, row = 0;
  std::uint64_t seed = 0;
};

class Inputs {
 public:
  Inputs(Device& device, Fill fill, std::uint64_t seed, const Shape& shape);

  const FillSpec& spec() const { return spec_; }
  const std::optional<ChangedRow>& changed_row() const { return changed_row_; }
  const float* x(Layout layout) { return tensor(Tensor::x, layout); }
  const float* filter(Layout layout) { return tensor(Tensor::filter, layout); }
  const float* bias() { return tensor(Tensor::bias, Layout::nchw); }

  /// Draws every x anew, in place, from another seed; filter and bias stay.
  void redraw_x(std::uint64_t seed);
  /// Draws one row of x anew, in one image and all of its channels, in place, from another seed.
  void redraw_row(std::uint64_t seed);

  /// Draws every tensor anew, in place, as it was drawn first.
  void restore();

  /// What a variant has done to the inputs or beside them; nothing if they are as drawn.
  std::optional<std::string> damage();

 private:
  struct Held {
    Tensor tensor;
    Layout layout;
    std::unique_ptr<Buffer> buffer;
    std::uint64_t checksum;
  };

  const float* tensor(Tensor tensor, Layout layout);

  Device& device_;
  FillSpec spec_;
  std::optional<ChangedRow> changed_row_;
  std::vector<Held> held_;
};

}  // namespace convmish
