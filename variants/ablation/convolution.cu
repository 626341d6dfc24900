// The direct convolutions with one choice changed each: grid, block, channels a step, row padding, registers.

#include "variants/common/naive_convolution.hpp"
#include "variants/common/tiled_convolution.hpp"

namespace convmish {
namespace {

Variant ablation(const char* name, const char* summary, Plan (*prepare)(const Problem&)) {
  return portable_variant({.name = name,
                           .summary = summary,
                           .math = MathClass::fp32,
                           .pipe = Pipe::ffma,
                           .group = Group::ablation,
                           .prepare = prepare});
}

constexpr TileConfig with_channels(TileConfig config, unsigned channels) {
  config.channels = channels;
  return config;
}

constexpr TileConfig with_padding(TileConfig config, unsigned row_padding) {
  config.row_padding = row_padding;
  return config;
}

constexpr TileConfig with_min_blocks(TileConfig config, int min_blocks) {
  config.min_blocks = min_blocks;
  return config;
}

const RegisterVariant rows[] = {
    {ablation("naive_grid_stride", "as naive, as many blocks as the GPU holds, each with many outputs",
              prepare_naive_convolution<NaiveConfig{.grid = GridForm::grid_stride}>)},

    // The same 16x16 outputs a block, and the registers that leave room for 1024 threads.
    {ablation("coarsened_1x4", "as tiled, 4x16 threads, four neighbouring outputs a thread",
              prepare_tiled_convolution<TileConfig{
                  .threads_x = 4, .threads_y = 16, .outputs = 4, .min_blocks = 16}>)},

    {ablation("tiled_channels_4", "as tiled, 4 input channels at a time",
              prepare_tiled_convolution<with_channels(kTiled, 4)>)},
    {ablation("tiled_channels_16", "as tiled, 16 input channels at a time",
              prepare_tiled_convolution<with_channels(kTiled, 16)>)},
    {ablation("coarsened_1x2_channels_4", "as coarsened_1x2, 4 input channels at a time",
              prepare_tiled_convolution<with_channels(kCoarsened1x2, 4)>)},
    {ablation("coarsened_1x2_channels_16", "as coarsened_1x2, 16 input channels at a time",
              prepare_tiled_convolution<with_channels(kCoarsened1x2, 16)>)},

    // The habit is 1. 30 makes rows of 48 floats: two rows of 16 columns then take the 32 banks once.
    {ablation("tiled_padded_1", "as tiled, rows of 19 floats in shared memory",
              prepare_tiled_convolution<with_padding(kTiled, 1)>)},
    {ablation("tiled_padded_30", "as tiled, rows of 48 floats in shared memory",
              prepare_tiled_convolution<with_padding(kTiled, 30)>)},
    {ablation("coarsened_1x2_padded_1", "as coarsened_1x2, rows of 19 floats in shared memory",
              prepare_tiled_convolution<with_padding(kCoarsened1x2, 1)>)},
    {ablation("coarsened_1x2_padded_30", "as coarsened_1x2, rows of 48 floats in shared memory",
              prepare_tiled_convolution<with_padding(kCoarsened1x2, 30)>)},

    {ablation("coarsened_1x2_blocks_1", "as coarsened_1x2, __launch_bounds__(128, 1)",
              prepare_tiled_convolution<with_min_blocks(kCoarsened1x2, 1)>)},
    {ablation("coarsened_1x2_blocks_16", "as coarsened_1x2, __launch_bounds__(128, 16)",
              prepare_tiled_convolution<with_min_blocks(kCoarsened1x2, 16)>)},
};

}  // namespace
}  // namespace convmish
