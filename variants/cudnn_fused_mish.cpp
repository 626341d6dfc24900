// cuDNN's convolution, then one pass of our own: bias, Mish, Mish.
//
// Improves on cudnn_unfused by two passes over the output: one read and one write of it do for the bias and
// both Mishes. The products lie in the workspace; cudnn_inplace_mish does without that tensor.

#include "variants/common/activation_pass.hpp"
#include "variants/common/cudnn_convolution.hpp"

namespace convmish {
namespace {

Plan prepare(const Problem& problem, MathClass math) {
  const auto convolution = fastest_cudnn_convolution(problem, math, {.epilogue = ConvolutionEpilogue::none});
  const CudnnWorkspace layout(*convolution, {problem.shape.y_elements()});
  const auto launch = [=, shape = problem.shape, filter = problem.filter,
                       bias = problem.bias](const LaunchArgs& args) {
    float* products = layout.tensor(args.workspace, 0);
    void* workspace = layout.convolution(args.workspace);
    convolution->launch({args.x, filter, nullptr, products, workspace}, args.stream);
    activate<DeviceKind::cuda>({products, bias, args.y, shape, MishCount::twice}, args.stream);
  };
  return {.launch = launch,
          .workspace_bytes = layout.bytes(),
          .note = convolution->note,
          .algorithm = convolution->algorithm};
}

const Variant row{.name = "cudnn_fused_mish",
                  .summary = "cuDNN convolution, then one out-of-place pass: bias + Mish + Mish"};
const RegisterVariant fp32{cudnn_variant(row, MathClass::fp32, prepare)};
const RegisterVariant tf32{cudnn_variant(row, MathClass::tf32, prepare)};

}  // namespace
}  // namespace convmish
