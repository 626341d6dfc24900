// Arrays in NumPy's file format, NPY 1.0 to 3.0: little-endian float32 in C order only, read strictly.
// The format: numpy.lib.format in NumPy's documentation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace convmish {

struct NpyArray {
  std::vector<std::int64_t> extents;  // slowest first
  std::vector<float> values;          // as many as the extents multiply to
};

/// Throws InputError "FILE: what is wrong; what would be right".
NpyArray read_npy(const std::filesystem::path& path);

/// Writes NPY 1.0. Throws InputError where the file cannot be written, and leaves none.
void write_npy(const std::filesystem::path& path, const NpyArray& array);

/// "(64, 3, 32, 32)", as Python writes a tuple.
std::string to_tuple(const std::vector<std::int64_t>& extents);

}  // namespace convmish
