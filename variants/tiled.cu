// A 16x16 tile of one output channel a block, one output a thread; x and the filter go through shared
// memory, 8 input channels at a time.
//
// Against `naive`: x is read from L2 once for the 9 taps and 256 outputs that want it, but each multiply-add
// still takes an operand from shared memory, and a warp covers two halo rows of 18 floats: two of the
// banks of the second row are those of the first, so that every read of x takes two turns.

#include "variants/common/tiled_convolution.hpp"

namespace convmish {
namespace {

const RegisterVariant registered{portable_variant({
    .name = "tiled",
    .summary = "16x16 outputs of one channel a block, 8 input channels at a time through shared memory",
    .math = MathClass::fp32,
    .pipe = Pipe::ffma,
    .prepare = prepare_tiled_convolution<kTiled>,
})};

}  // namespace
}  // namespace convmish
