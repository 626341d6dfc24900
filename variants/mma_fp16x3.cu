// mma_fp16x1 with each multiplicand in two fp16 terms and three products: fp32 accuracy from tensor cores.
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
        mma::configuration<2, Tiling{32, 1, 32, 2, 4, 1, 2}>(1.00),
        mma::configuration<2, Tiling{32, 4, 8, 2, 2, 2, 2}>(1.12),
    })};

}  // namespace
}  // namespace convmish
