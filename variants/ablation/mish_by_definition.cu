// The direct convolutions with Mish as x tanh(log1p(exp(x))), by the math library. In a file of its own, as
// it is where --use_fast_math, with which it is built too, changes what is computed.

#include "variants/common/naive_convolution.hpp"
#include "variants/common/tiled_convolution.hpp"

namespace convmish {
namespace {

constexpr TileConfig kCoarsenedByDefinition = [] {
  TileConfig config = kCoarsened1x2;
  config.mish = MishForm::definition;
  return config;
}();

const RegisterVariant rows[] = {
    {portable_variant({.name = "naive_by_definition",
                       .summary = "as naive, Mish as x tanhf(log1pf(expf(x)))",
                       .math = MathClass::fp32,
                       .pipe = Pipe::ffma,
                       .group = Group::ablation,
                       .prepare = prepare_naive_convolution<NaiveConfig{.mish = MishForm::definition}>})},
    {portable_variant({.name = "coarsened_1x2_by_definition",
                       .summary = "as coarsened_1x2, Mish as x tanhf(log1pf(expf(x)))",
                       .math = MathClass::fp32,
                       .pipe = Pipe::ffma,
                       .group = Group::ablation,
                       .prepare = prepare_tiled_convolution<kCoarsenedByDefinition>})},
};

}  // namespace
}  // namespace convmish
