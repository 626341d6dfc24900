// As `tiled`, with half the threads, each computing two neighbouring columns.
//
// Against `tiled`: the two outputs share their filter taps and two of three window columns, so that a
// multiply-add takes fewer reads of shared memory. The columns that a warp reads at once are two apart: of
// the 32 banks such a read can use 16, and rows of 18 floats make those of its four rows collide.

#include "variants/common/tiled_convolution.hpp"

namespace convmish {
namespace {

const RegisterVariant registered{{
    .name = "coarsened_1x2",
    .summary = "as tiled, 8x16 threads, two neighbouring outputs a thread",
    .device = kKernelDevice,
    .math = MathClass::fp32,
    .pipe = Pipe::ffma,
    .emulated = kKernelEmulated,
    .prepare =
        prepare_tiled_convolution<TileConfig{.threads_x = 8, .threads_y = 16, .outputs = 2, .min_blocks = 8}>,
}};

}  // namespace
}  // namespace convmish
