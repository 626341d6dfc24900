// mma_fp16x1 with each multiplicand in two fp16 terms and three products: fp32 accuracy from tensor cores.
//
// Registers: 128, at most 48 bytes of spills, none in the kernel of the headline shape; one thread block of
// 16 warps a multiprocessor:
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -I. -Isrc -arch=sm_90 -Xptxas -v -cubin
//     -o mma_fp16x3.cubin variants/mma_fp16x3.cu
//
// What binds it, on an H200 at n64 c64 h256 w256 k128 (4.61 ms): fragments come too late from shared memory.
// Two thirds of a warp's time go to the multiplications, where it waits for the tensor pipe (2.5 cycles an
// instruction), for the fixed latency of the instruction before (2.2) and for fragments (1.4). Tensor pipe
// 59 % of the cycles, L1 and shared memory 66 %, issue 40 %, DRAM 14 % (ncu, of warps of 1 x 32 pixels; those
// of 2 x 16, as now, load a sixth less).
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
        mma::configuration<2, Tiling{32, 2, 16, 2, 2, 2, 2}>(1.00),
        mma::configuration<2, Tiling{32, 4, 8, 2, 2, 2, 2}>(1.12),
    })};

}  // namespace
}  // namespace convmish
