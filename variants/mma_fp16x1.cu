// The whole fused operation in one kernel for every GPU from sm_80 on: mma.sync with multiplicands rounded
// once to fp16, which has TF32's significand. common/mma_fused.cuh is the kernel.
//
// Registers: 128, at most 192 bytes of spills, none in the kernel of the headline shape; one thread block of
// 16 warps a multiprocessor:
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90 -Xptxas -v -cubin
//     -o mma_fp16x1.cubin variants/mma_fp16x1.cu
//
// What binds it, on an H200 at n64 c64 h256 w256 k128 (2.44 ms): the latency of x's loads and the burst of a
// tile's epilogue, not a pipe. Tensor pipe 39 % of the cycles, issue 38 %, L1 47 %, L2 42 %, DRAM 28 % (ncu);
// of 10.4 cycles that a warp takes for an instruction it waits 2.0 for the fixed latency of the one before,
// 1.9 for loads, 1.6 for the tensor pipe, 1.2 for the queue to the special functions. results/h200/mma.md has
// what was tried.
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
        mma::configuration<1, Tiling{32, 2, 32, 4, 2, 1, 2}>(1.00),
        mma::configuration<1, Tiling{32, 8, 8, 4, 1, 2, 2}>(1.28),
        mma::configuration<1, Tiling{32, 2, 32, 2, 4, 1, 2}>(1.44),
        mma::configuration<1, Tiling{32, 8, 8, 2, 2, 2, 2}>(1.55),
    })};

}  // namespace
}  // namespace convmish
