// What a framework's eager mode does, one library call an operator: conv2d with bias, Mish, Mish. The
// baseline.
//
// Three passes, each reading its whole input from memory and writing its whole output. The first is one cuDNN
// graph of convolution and bias. For a shape for which cuDNN has no such plan of the math class, the first
// pass is the bare convolution and the bias is added by the first Mish: still three passes.

#include "core/error.hpp"
#include "variants/common/activation_pass.hpp"
#include "variants/common/cudnn_convolution.hpp"

namespace convmish {
namespace {

std::shared_ptr<const CudnnConvolution> convolution_with_bias_if_any(const Problem& problem, MathClass math) {
  try {
    return fastest_cudnn_convolution(problem, math, {.epilogue = ConvolutionEpilogue::bias});
  } catch (const Unsupported&) {
    return fastest_cudnn_convolution(problem, math, {.epilogue = ConvolutionEpilogue::none});
  }
}

Plan prepare(const Problem& problem, MathClass math) {
  const auto convolution = convolution_with_bias_if_any(problem, math);
  const CudnnWorkspace layout(*convolution, {problem.shape.y_elements()});
  const bool bias_is_left = convolution->graph.epilogue == ConvolutionEpilogue::none;
  const auto launch = [=, shape = problem.shape, filter = problem.filter,
                       bias = problem.bias](const LaunchArgs& args) {
    float* between = layout.tensor(args.workspace, 0);
    convolution->launch({args.x, filter, bias, args.y, layout.convolution(args.workspace)}, args.stream);
    activate<DeviceKind::cuda>({args.y, bias_is_left ? bias : nullptr, between, shape, MishCount::once},
                               args.stream);
    activate<DeviceKind::cuda>({between, nullptr, args.y, shape, MishCount::once}, args.stream);
  };
  return {.launch = launch,
          .workspace_bytes = layout.bytes(),
          .note = convolution->note + (bias_is_left ? "; bias in the first Mish" : "; bias in the plan"),
          .algorithm = convolution->algorithm};
}

const Variant row{.name = "cudnn_unfused",
                  .summary = "cuDNN convolution + bias, then Mish, then Mish: three passes"};
const RegisterVariant fp32{cudnn_variant(row, MathClass::fp32, prepare)};
const RegisterVariant tf32{cudnn_variant(row, MathClass::tf32, prepare)};

}  // namespace
}  // namespace convmish
