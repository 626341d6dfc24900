// What a kernel can be compiled for, where an ablation measures one form against the other. The first of
// each is what variants take.
#pragma once

namespace convmish {

enum class MishForm {
  one_exp,    // x n / (n + 2), by the special-function unit
  definition  // x tanh(log1p(exp(x))), by the math library
};

enum class GridForm {
  exact,       // a block for each part of the output
  grid_stride  // as many blocks as the device can hold, each with many parts
};

enum class Arithmetic {
  ieee,  // what C++ says
  fast   // nvcc's --use_fast_math: approximate division and library functions, subnormals flushed to 0
};

}  // namespace convmish
