// One thread an output; every operand is read straight from global memory.
//
// The yardstick: no tiling and no reuse but what the caches give, so that every later variant is told as a
// difference from this one. Two loads a multiply-add, of which the L1 cache's throughput is the limit.

#include "variants/common/naive_convolution.hpp"

namespace convmish {
namespace {

const RegisterVariant registered{portable_variant({
    .name = "naive",
    .summary = "one thread an output, every operand from global memory",
    .math = MathClass::fp32,
    .pipe = Pipe::ffma,
    .prepare = prepare_naive_convolution<NaiveConfig{}>,
})};

}  // namespace
}  // namespace convmish
