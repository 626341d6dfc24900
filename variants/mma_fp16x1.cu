// The whole fused operation in one kernel for every GPU from sm_80 on: mma.sync with multiplicands rounded
// once to fp16, which has TF32's significand. common/mma_fused.cuh is the kernel.
//
// Registers: 128, at most 124 bytes of spills, none in the kernel of the headline shape; one thread block of
// 16 warps a multiprocessor:
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90 -Xptxas -v -cubin
//     -o mma_fp16x1.cubin variants/mma_fp16x1.cu
//
// What binds it, on an H200 at n64 c64 h256 w256 k128 (1.94 ms): no pipe alone. One step before, at 1.96 ms,
// L1 and shared memory were busy in 70 % of the cycles, the L2 in 49 %, the DRAM in 35 %, and 43 % of the
// issue slots were used (ncu). Of a warp's time the multiplications took 40 %, the conversion of x 19 %, the
// epilogue 24 %, and waiting for the group's turn 13 %. results/h200/mma.md has what was tried.
#include "variants/common/mma_plan.cuh"

namespace convmish {
namespace {

using mma::Tiling;

const RegisterVariant registered{configured_variant(
    {
        .name = "mma_fp16x1",
        .summary = "fused, mma.sync: multiplicands rounded once to fp16, fp32 sums",
        .device = DeviceKind::cuda,
        .math = MathClass::tf32,
        .pipe = Pipe::tensor_fp16,
        .min_compute_capability = 80,
        .supports = mma::why_unsupported,
    },
    {
        mma::configuration<1, Tiling{32, 2, 32, 4, 1, 2, 2}>({.in_turns = 1.00, .otherwise = 1.53}),
        mma::configuration<1, Tiling{32, 2, 32, 4, 2, 1, 2}>({.in_turns = 1.12, .otherwise = 1.17}),
        mma::configuration<1, Tiling{32, 8, 8, 4, 1, 2, 2}>({.in_turns = 2.26, .otherwise = 1.50}),
        mma::configuration<1, Tiling{32, 2, 32, 2, 4, 1, 2}>({.in_turns = 1.03, .otherwise = 1.54}),
        mma::configuration<1, Tiling{32, 8, 8, 2, 2, 2, 2}>({.in_turns = 1.81, .otherwise = 1.90}),
    })};

}  // namespace
}  // namespace convmish
