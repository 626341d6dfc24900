// The whole fused operation in one kernel for every GPU from sm_80 on: mma.sync with multiplicands rounded
// once to fp16, which has TF32's significand. common/mma_fused.cuh is the kernel.
//
// Registers: 244 to 255, at most 32 bytes of spills; one thread block of 8 warps a multiprocessor:
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90 -Xptxas -v -cubin
//     -o mma_fp16x1.cubin variants/mma_fp16x1.cu
//
// What binds it, on an H200 at n64 c64 h256 w256 k128 (2.51 ms): two warps a scheduler are too few to hide
// the latency of what is not a multiplication. Multiplications alone take 1.09 ms, with loads and conversion
// 1.48 ms, everything but the multiplications 2.13 ms. Tensor pipe 40 % of the cycles, issue 34 %, DRAM 26 %
// (ncu); warps wait for the fixed latency of the instruction before (2.0 cycles an instruction), for loads
// (0.95) and for the tensor pipe (0.54).
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
