// cudnn_graph_fused as a user with NCHW tensors pays for it: x is brought to NHWC, y back to NCHW, one pass
// each, in every launch. The filter, which stays, is brought to k r s c once.
#include "variants/common/cudnn_convolution.hpp"
#include "variants/common/layout_change.hpp"

namespace convmish {
namespace {

Plan prepare(const Problem& problem, MathClass math) {
  const Shape shape = problem.shape;
  auto* filter = static_cast<float*>(
      problem.memory->allocate(sizeof(float) * static_cast<std::size_t>(shape.filter_elements())));
  change_layout<DeviceKind::cuda>({problem.filter, filter, shape.k, shape.c, kTaps, Layout::nhwc},
                                  problem.stream);

  Problem nhwc = problem;  // x and y as they are: a search writes y and times, it does not compare
  nhwc.filter = filter;
  const auto fused = fastest_cudnn_convolution(
      nhwc, math, {.layout = Layout::nhwc, .epilogue = ConvolutionEpilogue::bias_mish_by_exp});
  const CudnnWorkspace layout(*fused, {shape.x_elements(), shape.y_elements()});
  const auto launch = [=, bias = problem.bias](const LaunchArgs& args) {
    float *x = layout.tensor(args.workspace, 0), *y = layout.tensor(args.workspace, 1);
    change_layout<DeviceKind::cuda>({args.x, x, shape.n, shape.c, shape.h * shape.w, Layout::nhwc},
                                    args.stream);
    fused->launch({x, filter, bias, y, layout.convolution(args.workspace)}, args.stream);
    change_layout<DeviceKind::cuda>({y, args.y, shape.n, shape.k, shape.p() * shape.q(), Layout::nchw},
                                    args.stream);
  };
  return {.launch = launch,
          .workspace_bytes = layout.bytes(),
          .note = fused->note,
          .algorithm = fused->algorithm};
}

const RegisterVariant registered{
    cudnn_variant({.name = "cudnn_graph_fused_nchw",
                   .summary = "cudnn_graph_fused with x brought to NHWC and y back, one pass each"},
                  MathClass::tf32, prepare)};

}  // namespace
}  // namespace convmish
