// Where an element lies in memory, by layout; and how an output tensor is cut into chunks.
#pragma once

#include <cstdint>

#include "check/fill.hpp"
#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

/// Strides, in elements, of a tensor with axes (outer, channel, row, column).
struct Strides {
  std::int64_t outer, channel, row, column;

  CONVMISH_HD std::int64_t offset(std::int64_t o, std::int64_t c, std::int64_t r, std::int64_t col) const {
    return o * outer + c * channel + r * row + col * column;
  }
};

/// `channels` planes of rows x columns an outer index: x is (n; c, h, w), filter (k; c, 3, 3), y (n; k, p,
/// q).
CONVMISH_HD constexpr Strides strides(Layout layout, std::int64_t channels, std::int64_t rows,
                                      std::int64_t columns) {
  if (layout == Layout::nhwc) return {channels * rows * columns, 1, columns * channels, channels};
  return {channels * rows * columns, rows * columns, columns, 1};
}
CONVMISH_HD constexpr Strides x_strides(Layout layout, const Shape& s) {
  return strides(layout, s.c, s.h, s.w);
}
CONVMISH_HD constexpr Strides filter_strides(Layout layout, const Shape& s) {
  return strides(layout, s.c, kFilterSize, kFilterSize);
}
CONVMISH_HD constexpr Strides y_strides(Layout layout, const Shape& s) {
  return strides(layout, s.k, s.p(), s.q());
}

/// A tensor's extents, by the axes of Strides.
struct TensorDims {
  std::int64_t outer, channels, rows, columns;

  CONVMISH_HD constexpr std::int64_t count() const { return outer * channels * rows * columns; }
  /// Where element i, counted in logical order, lies in memory.
  CONVMISH_HD std::int64_t offset(const Strides& to, std::int64_t i) const {
    const std::int64_t column = i % columns;
    i /= columns;
    const std::int64_t row = i % rows;
    i /= rows;
    return to.offset(i / channels, i % channels, row, column);
  }
};
CONVMISH_HD constexpr TensorDims tensor_dims(const Shape& s, Tensor tensor) {
  switch (tensor) {
    case Tensor::x:
      return {s.n, s.c, s.h, s.w};
    case Tensor::filter:
      return {s.k, s.c, kFilterSize, kFilterSize};
    case Tensor::bias:
      break;
  }
  return {1, 1, 1, s.k};
}

/// A box of outputs: whole images, or channels of one image, or rows of one plane.
struct Chunk {
  std::int64_t n0 = 0, n1 = 0, k0 = 0, k1 = 0, p0 = 0, p1 = 0, q = 0;

  CONVMISH_HD std::int64_t outputs() const { return (n1 - n0) * (k1 - k0) * (p1 - p0) * q; }

  struct At {
    std::int64_t n, k, p, q;
  };
  /// The coordinate of output i of this chunk, counted in the order n k p q.
  CONVMISH_HD At at(std::int64_t i) const {
    const std::int64_t column = i % q;
    i /= q;
    const std::int64_t row = i % (p1 - p0);
    i /= p1 - p0;
    return {n0 + i / (k1 - k0), k0 + i % (k1 - k0), p0 + row, column};
  }
  CONVMISH_HD std::int64_t index(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t column) const {
    return (((n - n0) * (k1 - k0) + k - k0) * (p1 - p0) + p - p0) * q + column;
  }
};

/// Calls `visit` with chunks of at most about `most` outputs (never less than a row) that cover y in order.
template <class Visit>
void for_each_chunk(const Shape& s, std::int64_t most, Visit visit) {
  const std::int64_t row = s.q(), plane = s.p() * row, image = s.k * plane;
  const auto fit = [most](std::int64_t unit) { return most / unit < 1 ? std::int64_t{1} : most / unit; };
  const std::int64_t images = fit(image);
  const std::int64_t channels = image <= most ? s.k : fit(plane);
  const std::int64_t rows = plane <= most ? s.p() : fit(row);
  for (std::int64_t n = 0; n < s.n; n += images)
    for (std::int64_t k = 0; k < s.k; k += channels)
      for (std::int64_t p = 0; p < s.p(); p += rows) {
        const auto end = [](std::int64_t from, std::int64_t step, std::int64_t limit) {
          return from + step < limit ? from + step : limit;
        };
        visit(Chunk{n, end(n, images, s.n), k, end(k, channels, s.k), p, end(p, rows, s.p()), row});
      }
}

}  // namespace convmish
