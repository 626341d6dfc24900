#include "check/fill.hpp"

#include <algorithm>
#include <cmath>

namespace convmish {

FillSpec fill_spec(Fill fill, std::uint64_t seed, const Shape& shape) {
  FillSpec spec{.fill = fill, .seed = seed, .shape = shape};
  const double reduction = static_cast<double>(shape.reduction());
  spec.scale = static_cast<float>(1.0 / std::sqrt(reduction));
  // x has variance 4 (integers -3..3), the filter 2 (-2..2): a sum deviates by sqrt(8 * reduction).
  spec.exact_unit = static_cast<float>(std::exp2(-std::round(std::log2(std::sqrt(8.0 * reduction) / 3.0))));
  // Few enough for most windows of a large tensor to stay finite; of a small one, each kind once.
  spec.special_stretch = static_cast<int>(std::clamp<std::int64_t>(shape.x_elements() / 8, 4, 1024));
  return spec;
}

}  // namespace convmish
