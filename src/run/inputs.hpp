// The inputs of a check or a timing, drawn once on the device for all variants that share them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/fill.hpp"
#include "core/device.hpp"

namespace convmish {

/// An element of x, by its index in NCHW order, that is not as it was drawn.
struct ChangedElement {
  std::int64_t index = 0;
  float value = 0;
};

/// "wrote before NAME" or "wrote past NAME"; nothing where both of the buffer's guard zones are as they were.
std::optional<std::string> stray_write(Buffer& buffer, std::string_view name);

class Inputs {
 public:
  Inputs(Device& device, Fill fill, std::uint64_t seed, const Shape& shape);

  const FillSpec& spec() const { return spec_; }
  const std::optional<ChangedElement>& changed_element() const { return changed_element_; }
  const float* x(Layout layout) { return tensor(Tensor::x, layout); }
  /// Memory for an x that no figure depends on; what it holds is undefined.
  const float* undrawn_x();
  const float* filter(Layout layout) { return tensor(Tensor::filter, layout); }
  const float* bias() { return tensor(Tensor::bias, Layout::nchw); }

  /// Draws every x anew, in place, in another way; filter and bias stay.
  void redraw_x(Fill fill, std::uint64_t seed);
  /// Changes one element of every x in place, off the edges, which some filters never reach to; the one of
  /// the call before is as drawn again. No rounding of a class hides the new value.
  void change_element(std::uint64_t random);

  /// Makes good what damage() finds: every tensor as it was last drawn or changed, guard zones too.
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
  void write_x(std::int64_t index, float value);

  Device& device_;
  FillSpec spec_;
  std::optional<ChangedElement> changed_element_;
  std::vector<Held> held_;
  std::unique_ptr<Buffer> undrawn_x_;
};

}  // namespace convmish
