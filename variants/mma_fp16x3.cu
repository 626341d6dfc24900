// mma_fp16x1 with each multiplicand in two fp16 terms and three products: fp32 accuracy from tensor cores.
//
// Registers: 128, at most 104 bytes of spills, none in the kernel of the headline shape; one thread block of
// 16 warps a multiprocessor:
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90 -Xptxas -v -cubin
//     -o mma_fp16x3.cubin variants/mma_fp16x3.cu
//
// What binds it, on an H200 at n64 c64 h256 w256 k128, packed ahead (common/mma_ahead.cuh; 4.22 ms): a
// group's turn of multiplications and then its epilogue, one after the other. Multiplications alone take 3.23
// ms, with an epilogue that does not pack the next tile 3.70. results/h200/mma.md has what was tried.
#include "variants/common/mma_plan.cuh"

namespace convmish {
namespace {

using mma::Tiling;

const RegisterVariant registered{configured_variant(
    {
        .name = "mma_fp16x3",
        .summary = "fused, mma.sync: multiplicands split in two fp16 terms, three products, fp32 sums",
        .device = DeviceKind::cuda,
        .math = MathClass::fp32,
        .pipe = Pipe::tensor_fp16,
        .products = 3,
        .min_compute_capability = 80,
        .supports = mma::why_unsupported,
    },
    {
        mma::configuration<2, Tiling{32, 4, 8, 2, 2, 2, 2}>({.in_turns = 1.00, .otherwise = 1.40}),
        mma::configuration<2, Tiling{32, 2, 16, 2, 2, 2, 2}>({.in_turns = 1.01, .otherwise = 1.42}),
    })};

}  // namespace
}  // namespace convmish
