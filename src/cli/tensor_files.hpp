// A folder of NumPy files as tensors: x.npy, filter.npy or weight.npy, bias.npy and y.npy.
#pragma once

#include <filesystem>

#include "core/words.hpp"
#include "run/given_tensors.hpp"

namespace convmish {

/// x is n c h w and the filter k c 3 3, whatever the layout of y: n k p q, or n p q k. Throws InputError that
/// names the file, and the dimension that does not fit.
GivenTensors read_tensors(const std::filesystem::path& folder, Layout y_layout);

}  // namespace convmish
