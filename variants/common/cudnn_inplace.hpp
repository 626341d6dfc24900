// cuDNN's convolution into y, then the elementwise pass over y in place.
#pragma once

#include "variants/common/activation_pass.hpp"
#include "variants/common/cudnn_convolution.hpp"

namespace convmish {

/// The plan of such a variant, the pass in one of its forms.
template <ActivationForm kForm = ActivationForm{}>
Plan prepare_cudnn_inplace(const Problem& problem, MathClass math) {
  const auto convolution = fastest_cudnn_convolution(problem, math, {.epilogue = ConvolutionEpilogue::none});
  const auto launch = [=, shape = problem.shape, filter = problem.filter,
                       bias = problem.bias](const LaunchArgs& args) {
    convolution->launch({args.x, filter, nullptr, args.y, args.workspace}, args.stream);
    activate<DeviceKind::cuda, kForm>({args.y, bias, args.y, shape, MishCount::twice}, args.stream);
  };
  return {.launch = launch,
          .workspace_bytes = convolution->workspace_bytes,
          .note = convolution->note,
          .algorithm = convolution->algorithm};
}

}  // namespace convmish
