// Winograd's F(4x4, 3x3) in fp32: tiles of 4x4 outputs by 36 instead of 144 multiplications a channel.
//
// Matrices after Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016): a tile of
// outputs is A^T [sum over c of (G w G^T) * (B^T x B)] A.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/shape.hpp"

namespace convmish {

template <std::size_t kRows, std::size_t kColumns>
using Matrix = std::array<std::array<float, kColumns>, kRows>;

inline constexpr Matrix<6, 6> kWinogradInput{{{4, 0, -5, 0, 1, 0},
                                              {0, -4, -4, 1, 1, 0},
                                              {0, 4, -4, -1, 1, 0},
                                              {0, -2, -1, 2, 1, 0},
                                              {0, 2, -1, -2, 1, 0},
                                              {0, 4, 0, -5, 0, 1}}};
inline constexpr Matrix<6, 3> kWinogradFilter{{{1 / 4.0f, 0, 0},
                                               {-1 / 6.0f, -1 / 6.0f, -1 / 6.0f},
                                               {-1 / 6.0f, 1 / 6.0f, -1 / 6.0f},
                                               {1 / 24.0f, 1 / 12.0f, 1 / 6.0f},
                                               {1 / 24.0f, -1 / 12.0f, 1 / 6.0f},
                                               {0, 0, 1}}};
inline constexpr Matrix<4, 6> kWinogradOutput{
    {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};

/// m t m^T.
template <std::size_t kTo, std::size_t kFrom>
Matrix<kTo, kTo> transform(const Matrix<kTo, kFrom>& m, const Matrix<kFrom, kFrom>& t) {
  Matrix<kTo, kFrom> half{};
  for (std::size_t i = 0; i < kTo; ++i)
    for (std::size_t j = 0; j < kFrom; ++j)
      for (std::size_t l = 0; l < kFrom; ++l) half[i][j] += m[i][l] * t[l][j];
  Matrix<kTo, kTo> whole{};
  for (std::size_t i = 0; i < kTo; ++i)
    for (std::size_t j = 0; j < kTo; ++j)
      for (std::size_t l = 0; l < kFrom; ++l) whole[i][j] += half[i][l] * m[j][l];
  return whole;
}

/// Pre-activations, n k p q, of tensors in NCHW. `round` is what multiplicands pass through.
template <class Round>
std::vector<float> convolve_by_winograd(const Shape& s, const float* x, const float* filter,
                                        const float* bias, Round round) {
  const auto rounded = [round](Matrix<6, 6> tile) {
    for (auto& row : tile)
      for (float& value : row) value = round(value);
    return tile;
  };
  std::vector<Matrix<6, 6>> filters;
  for (std::int64_t i = 0; i < s.k * s.c; ++i) {
    Matrix<3, 3> taps;
    for (std::size_t t = 0; t < 9; ++t) taps[t / 3][t % 3] = filter[i * 9 + static_cast<std::int64_t>(t)];
    filters.push_back(rounded(transform(kWinogradFilter, taps)));
  }
  std::vector<float> z(static_cast<std::size_t>(s.y_elements()));
  std::vector<Matrix<6, 6>> inputs(static_cast<std::size_t>(s.c));
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t p = 0; p < s.p(); p += 4)
      for (std::int64_t q = 0; q < s.q(); q += 4) {
        for (std::int64_t c = 0; c < s.c; ++c) {
          Matrix<6, 6> tile{};
          for (std::int64_t i = 0; i < 6 && p + i < s.h; ++i)
            for (std::int64_t j = 0; j < 6 && q + j < s.w; ++j)
              tile[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
                  x[((n * s.c + c) * s.h + p + i) * s.w + q + j];
          inputs[static_cast<std::size_t>(c)] = rounded(transform(kWinogradInput, tile));
        }
        for (std::int64_t k = 0; k < s.k; ++k) {
          Matrix<6, 6> sums{};
          for (std::int64_t c = 0; c < s.c; ++c)
            for (std::size_t i = 0; i < 36; ++i)
              sums[i / 6][i % 6] += filters[static_cast<std::size_t>(k * s.c + c)][i / 6][i % 6] *
                                    inputs[static_cast<std::size_t>(c)][i / 6][i % 6];
          const Matrix<4, 4> outputs = transform(kWinogradOutput, sums);
          for (std::int64_t i = 0; i < 4 && p + i < s.p(); ++i)
            for (std::int64_t j = 0; j < 4 && q + j < s.q(); ++j)
              z[static_cast<std::size_t>(((n * s.k + k) * s.p() + p + i) * s.q() + q + j)] =
                  outputs[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] + bias[k];
        }
      }
  return z;
}

}  // namespace convmish
