// A folder of NumPy files as tensors: x.npy, filter.npy or weight.npy, bias.npy and y.npy.
#pragma once

#include <filesystem>
#include <vector>

#include "check/fill.hpp"
#include "core/device.hpp"
#include "core/words.hpp"
#include "run/given_tensors.hpp"

namespace convmish {

/// x is n c h w and the filter k c 3 3, whatever the layout of y: n k p q, or n p q k. Throws InputError that
/// names the file, and the dimension that does not fit.
GivenTensors read_tensors(const std::filesystem::path& folder, Layout y_layout);

/// y alone, of `shape` and in the memory order of `y_layout`. Throws InputError as above.
std::vector<float> read_output(const std::filesystem::path& folder, const Shape& shape, Layout y_layout);

/// Draws on the device and writes x.npy, filter.npy and bias.npy in logical order; makes the folder. Throws
/// InputError where a file cannot be written.
void write_operands(Device& device, const FillSpec& spec, const std::filesystem::path& folder);

}  // namespace convmish
