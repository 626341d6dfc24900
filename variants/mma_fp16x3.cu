// mma_fp16x1 with each multiplicand in two fp16 terms and three products: fp32 accuracy from tensor cores.
#include "variants/common/mma_plan.cuh"

namespace convmish {
namespace {

const RegisterVariant registered{{
    .name = "mma_fp16x3",
    .summary = "fused, mma.sync: multiplicands split in two fp16 terms, three products, fp32 sums",
    .device = DeviceKind::cuda,
    .math = MathClass::fp32,
    .pipe = Pipe::tensor_fp16,
    .products = 3,
    .min_compute_capability = 80,
    .supports = mma::why_unsupported,
    .prepare = mma::prepare<2>,
}};

}  // namespace
}  // namespace convmish
