// The whole operation as one cuDNN graph: convolution, bias, Mish, Mish, fused into one kernel that cuDNN
// compiles at run time. NHWC, the only layout in which its engines write such a graph's output.
//
// The graph computes Mish by one exponential (ConvolutionEpilogue::bias_mish_by_exp). The graph that one
// would write down first, x tanh(softplus(x)), is inexact in cuDNN 9.19: in the negative tail it is 0 where
// it should be x e^x (at -27, for instance), and elsewhere it errs by more than fp32 rounds, which the exact
// fill shows. It is also the slower one: 2.86 ms against 2.10 ms for n64c64h256w256k128, in one run on an
// H200. The ablation cudnn_graph_fused_by_definition repeats the comparison; it does not pass.
#include "variants/common/cudnn_convolution.hpp"

namespace convmish {
namespace {

template <ConvolutionEpilogue kEpilogue>
Plan prepare(const Problem& problem, MathClass math) {
  const auto fused =
      fastest_cudnn_convolution(problem, math, {.layout = Layout::nhwc, .epilogue = kEpilogue});
  const auto launch = [fused, filter = problem.filter, bias = problem.bias](const LaunchArgs& args) {
    fused->launch({args.x, filter, bias, args.y, args.workspace}, args.stream);
  };
  return {.launch = launch,
          .workspace_bytes = fused->workspace_bytes,
          .note = fused->note,
          .algorithm = fused->algorithm};
}

const RegisterVariant by_exp{
    cudnn_variant({.name = "cudnn_graph_fused",
                   .summary = "one cuDNN graph, convolution + bias + Mish + Mish in one kernel, NHWC",
                   .layout = Layout::nhwc},
                  MathClass::tf32, prepare<ConvolutionEpilogue::bias_mish_by_exp>)};
const RegisterVariant by_definition{cudnn_variant(
    {.name = "cudnn_graph_fused_by_definition",
     .summary = "cudnn_graph_fused with Mish as x tanh(softplus(x)), which cuDNN computes inexactly",
     .layout = Layout::nhwc,
     .group = Group::ablation},
    MathClass::tf32, prepare<ConvolutionEpilogue::bias_mish_by_definition>)};
// What the fusion costs: its time is that of a launch that stops at the products.
const RegisterVariant bare{cudnn_variant(
    {.name = "cudnn_graph_convolution",
     .summary = "the convolution of cudnn_graph_fused and nothing behind it: to be timed with --no-check",
     .layout = Layout::nhwc,
     .group = Group::ablation},
    MathClass::tf32, prepare<ConvolutionEpilogue::none>)};

}  // namespace
}  // namespace convmish
