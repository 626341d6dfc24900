// Between NCHW and NHWC every image is a matrix, channels by pixels, to be transposed. A block takes one
// square tile through shared memory: a warp reads consecutive floats of a row and writes consecutive floats
// of a column.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "variants/common/divide_up.hpp"
#include "variants/common/fast_divider.hpp"
#include "variants/common/kernel.hpp"
#include "variants/common/layout_change.hpp"

namespace convmish {
namespace {

struct TransposeKernel {
  static constexpr const char* kName = "layout_change";
  static constexpr unsigned kTile = 32;       // floats: 128 bytes, a whole cache line on either side
  static constexpr unsigned kRowsAtOnce = 8;  // 4 loads a thread in flight before the barrier
  static constexpr dim3 kBlock{kTile, kRowsAtOnce};
  struct SharedStorage {
    float tile[kTile][kTile + 1];  // an odd pitch: neither a row nor a column meets a bank twice
  };

  const float* in;
  float* out;
  std::int64_t rows, columns;  // of each matrix of `in`
  FastDivider by_matrix_tiles, by_row_tiles;

  __device__ void operator()(SharedStorage& shared) const {
    // Row tiles go fastest: blocks that run together write whole columns, their reads are far apart anyway.
    const auto [matrix, tile] = by_matrix_tiles.divide(blockIdx.x);
    const auto [column_tile, row_tile] = by_row_tiles.divide(tile);
    const std::int64_t first_row = row_tile * kTile, first_column = column_tile * kTile;
    const std::int64_t first = matrix * rows * columns;

    const float* from = in + first + first_row * columns + first_column;
    CONVMISH_UNROLL
    for (unsigned i = 0; i < kTile; i += kRowsAtOnce) {
      const unsigned row = i + threadIdx.y;
      if (first_row + row < rows && first_column + threadIdx.x < columns)
        shared.tile[row][threadIdx.x] = __ldg(from + row * columns + threadIdx.x);
    }
    __syncthreads();
    float* to = out + first + first_column * rows + first_row;
    CONVMISH_UNROLL
    for (unsigned i = 0; i < kTile; i += kRowsAtOnce) {
      const unsigned column = i + threadIdx.y;
      if (first_column + column < columns && first_row + threadIdx.x < rows)
        to[column * rows + threadIdx.x] = shared.tile[threadIdx.x][column];
    }
  }
};

}  // namespace

template <>
void change_layout<kKernelDevice>(const LayoutChange& change, Stream stream) {
  const bool to_nhwc = change.to == Layout::nhwc;
  const std::int64_t rows = to_nhwc ? change.channels : change.pixels;
  const std::int64_t columns = to_nhwc ? change.pixels : change.channels;
  const auto tiles = [](std::int64_t extent) { return divide_up(extent, TransposeKernel::kTile); };
  const std::int64_t matrix_tiles = tiles(rows) * tiles(columns);
  const FastDivider by_matrix_tiles(matrix_tiles), by_row_tiles(tiles(rows));
  // As many whole matrices a launch as a grid can count.
  const std::int64_t most =
      std::max<std::int64_t>(1, std::numeric_limits<std::int32_t>::max() / matrix_tiles);
  for (std::int64_t done = 0; done < change.outer; done += most) {
    const std::int64_t matrices = std::min(most, change.outer - done), offset = done * rows * columns;
    launch_kernel(TransposeKernel{change.in + offset, change.out + offset, rows, columns, by_matrix_tiles,
                                  by_row_tiles},
                  dim3(static_cast<unsigned>(matrices * matrix_tiles)), stream);
  }
}

}  // namespace convmish
