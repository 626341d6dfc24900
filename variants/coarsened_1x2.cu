// As `tiled`, with half the threads, each computing two neighbouring columns.
//
// Against `tiled`: the two outputs share their filter taps and two of three window columns, so that a
// multiply-add takes fewer reads of shared memory. The columns that a warp reads at once are two apart: of
// the 32 banks such a read can use 16, and rows of 18 floats make those of its four rows collide.

#include "variants/common/tiled_convolution.hpp"

namespace convmish {
namespace {

const RegisterVariant registered{portable_variant({
    .name = "coarsened_1x2",
    .summary = "as tiled, 8x16 threads, two neighbouring outputs a thread",
    .math = MathClass::fp32,
    .pipe = Pipe::ffma,
    .prepare = prepare_tiled_convolution<kCoarsened1x2>,
})};

}  // namespace
}  // namespace convmish
