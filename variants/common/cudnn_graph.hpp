// The operation graphs that the variants give to cuDNN: the convolution and what it computes behind the
// products. Tensors are fp32, every operation computes in fp32.
#pragma once

#include "core/variant.hpp"

namespace cudnn_frontend {
class OperationGraph_v8;
class VariantPack_v8;
}  // namespace cudnn_frontend

namespace convmish {

/// What a graph computes behind the products.
enum class ConvolutionEpilogue {
  none,
  bias,
  /// Bias, then twice x tanh(softplus(x)): Mish by its definition, and as frameworks write it.
  bias_mish_by_definition,
  /// Bias, then twice x n / (n + 2), n = e (e + 2), e = exp(min(x, 20)): the same function, without loss in
  /// the negative tail.
  bias_mish_by_exp,
};

struct ConvolutionGraph {
  Layout layout = Layout::nchw;  // of x, filter and y
  ConvolutionEpilogue epilogue = ConvolutionEpilogue::none;

  auto operator<=>(const ConvolutionGraph&) const = default;
};

/// The graph's tensors in device memory, in its layout, aligned to 16 bytes.
struct ConvolutionOperands {
  const float* x = nullptr;
  const float* filter = nullptr;
  const float* bias = nullptr;  // ignored where the graph has none
  float* y = nullptr;
  void* workspace = nullptr;
};

/// Throws cudnnException where cuDNN does not know such a graph.
cudnn_frontend::OperationGraph_v8 operation_graph(const Shape& shape, const ConvolutionGraph& graph,
                                                  Stream stream);

/// What a launch of the graph's plan is given. Throws cudnnException where cuDNN rejects the pointers.
cudnn_frontend::VariantPack_v8 variant_pack(const ConvolutionGraph& graph,
                                            const ConvolutionOperands& operands);

}  // namespace convmish
