#include "variants/common/cudnn_graph.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "variants/common/cudnn_library.hpp"

namespace convmish {
namespace {

constexpr std::int64_t kTensorAlignment = 16;  // bytes, promised to cuDNN

// What a launch binds; the tensors between two operations are numbered from kFirstBetween on.
enum TensorId : std::int64_t { kXId, kFilterId, kBiasId, kYId, kTwoId, kIdentityFromId, kFirstBetween };

/// A scalar that cuDNN reads from the host's memory at each launch: it must outlive the launch.
struct Constant {
  TensorId id;
  float value;
};
constexpr Constant kTwo{kTwoId, 2.0f};
// From here on n / (n + 2) is 1 to fp32; n is far from overflow.
constexpr Constant kIdentityFrom{kIdentityFromId, 20.0f};

bool has_bias(ConvolutionEpilogue epilogue) {
  return epilogue != ConvolutionEpilogue::none;
}

/// Collects the operations of one graph, in order.
class GraphBuilder {
 public:
  GraphBuilder(const Shape& shape, Layout layout) : shape_(shape), layout_(layout) {}

  using Value = fe::Tensor;

  /// A tensor that no memory holds: its producer and its consumers are one kernel.
  Value between() { return tensor(next_between_++, y_dims(), Kind::between); }
  Value y() const { return tensor(kYId, y_dims(), Kind::bound); }
  Value bias() const { return tensor(kBiasId, {1, shape_.k, 1, 1}, Kind::bound); }
  Value constant(const Constant& which) const { return tensor(which.id, {1, 1, 1, 1}, Kind::scalar); }

  void convolve(const Value& products) {
    const std::array<std::int64_t, 2> none{0, 0}, unit{1, 1};
    const auto convolution = fe::ConvDescBuilder()
                                 .setComputeType(CUDNN_DATA_FLOAT)
                                 .setMathMode(CUDNN_CROSS_CORRELATION)
                                 .setSpatialDimCount(2)
                                 .setSpatialStride(2, unit.data())
                                 .setPrePadding(2, none.data())
                                 .setPostPadding(2, none.data())
                                 .setDilation(2, unit.data())
                                 .build();
    operations_.push_back(
        fe::OperationBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
            .setxDesc(tensor(kXId, {shape_.n, shape_.c, shape_.h, shape_.w}, Kind::bound))
            .setwDesc(tensor(kFilterId, {shape_.k, shape_.c, kFilterSize, kFilterSize}, Kind::bound))
            .setyDesc(products)
            .setcDesc(convolution)
            .setAlpha(1.0f)
            .setBeta(0.0f)
            .build());
  }

  void unary(cudnnPointwiseMode_t mode, const Value& in, const Value& out) {
    operations_.push_back(pointwise(mode).setxDesc(in).setyDesc(out).build());
  }
  void binary(cudnnPointwiseMode_t mode, const Value& a, const Value& b, const Value& out) {
    operations_.push_back(pointwise(mode).setxDesc(a).setbDesc(b).setyDesc(out).build());
  }
  Value unary(cudnnPointwiseMode_t mode, const Value& in) {
    Value out = between();
    unary(mode, in, out);
    return out;
  }
  Value binary(cudnnPointwiseMode_t mode, const Value& a, const Value& b) {
    Value out = between();
    binary(mode, a, b, out);
    return out;
  }

  fe::OperationGraph build(Stream stream) const {
    std::vector<const fe::Operation*> pointers;
    for (const fe::Operation& operation : operations_) pointers.push_back(&operation);
    return fe::OperationGraphBuilder()
        .setHandle(cudnn_handle_on(stream))
        .setOperationGraph(static_cast<std::int64_t>(pointers.size()), pointers.data())
        .build();
  }

 private:
  using Dims = std::array<std::int64_t, 4>;
  enum class Kind { bound, between, scalar };

  Dims y_dims() const { return {shape_.n, shape_.k, shape_.p(), shape_.q()}; }

  /// `dims` in cuDNN's order, which is that of n c h w whatever the layout.
  Value tensor(std::int64_t id, const Dims& dims, Kind kind) const {
    const auto [outer, channels, rows, columns] = dims;
    const std::int64_t image = channels * rows * columns;
    const Dims strides = layout_ == Layout::nhwc ? Dims{image, 1, columns * channels, channels}
                                                 : Dims{image, rows * columns, columns, 1};
    return fe::TensorBuilder()
        .setDataType(CUDNN_DATA_FLOAT)
        .setDim(4, dims.data())
        .setStride(4, strides.data())
        .setId(id)
        .setAlignment(kTensorAlignment)
        .setVirtual(kind == Kind::between)
        .setByValue(kind == Kind::scalar)
        .build();
  }

  static fe::OperationBuilder pointwise(cudnnPointwiseMode_t mode) {
    fe::OperationBuilder operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.setpwDesc(fe::PointWiseDescBuilder().setMode(mode).setComputeType(CUDNN_DATA_FLOAT).build());
    return operation;
  }

  Shape shape_;
  Layout layout_;
  std::vector<fe::Operation> operations_;
  std::int64_t next_between_ = kFirstBetween;
};

// Mish as nodes of the graph, from `x` to `out`.

void mish_by_definition(GraphBuilder& graph, const fe::Tensor& x, const fe::Tensor& out) {
  const auto softplus = graph.unary(CUDNN_POINTWISE_SOFTPLUS_FWD, x);
  const auto tanh = graph.unary(CUDNN_POINTWISE_TANH_FWD, softplus);
  graph.binary(CUDNN_POINTWISE_MUL, x, tanh, out);
}

void mish_by_exp(GraphBuilder& graph, const fe::Tensor& x, const fe::Tensor& out) {
  const auto two = graph.constant(kTwo);
  const auto clamped = graph.binary(CUDNN_POINTWISE_MIN, x, graph.constant(kIdentityFrom));
  const auto e = graph.unary(CUDNN_POINTWISE_EXP, clamped);
  const auto n = graph.binary(CUDNN_POINTWISE_MUL, e, graph.binary(CUDNN_POINTWISE_ADD, e, two));
  const auto quotient = graph.binary(CUDNN_POINTWISE_DIV, n, graph.binary(CUDNN_POINTWISE_ADD, n, two));
  // x last: x n would overflow at FLT_MAX.
  graph.binary(CUDNN_POINTWISE_MUL, x, quotient, out);
}

}  // namespace

fe::OperationGraph operation_graph(const Shape& shape, const ConvolutionGraph& graph, Stream stream) {
  GraphBuilder builder(shape, graph.layout);
  const auto y = builder.y();
  if (!has_bias(graph.epilogue)) {
    builder.convolve(y);
    return builder.build(stream);
  }
  const auto products = builder.between();
  builder.convolve(products);
  if (graph.epilogue == ConvolutionEpilogue::bias) {
    builder.binary(CUDNN_POINTWISE_ADD, products, builder.bias(), y);
    return builder.build(stream);
  }
  const auto mish =
      graph.epilogue == ConvolutionEpilogue::bias_mish_by_exp ? mish_by_exp : mish_by_definition;
  const auto z = builder.binary(CUDNN_POINTWISE_ADD, products, builder.bias());
  const auto once = builder.between();
  mish(builder, z, once);
  mish(builder, once, y);
  return builder.build(stream);
}

fe::VariantPack variant_pack(const ConvolutionGraph& graph, const ConvolutionOperands& operands) {
  std::vector<void*> pointers;
  std::vector<std::int64_t> ids;
  const auto bind = [&](TensorId id, const float* data) {
    ids.push_back(id);
    pointers.push_back(const_cast<float*>(data));  // it writes to y and the workspace alone
  };
  bind(kXId, operands.x);
  bind(kFilterId, operands.filter);
  bind(kYId, operands.y);
  if (has_bias(graph.epilogue)) bind(kBiasId, operands.bias);
  if (graph.epilogue == ConvolutionEpilogue::bias_mish_by_exp)
    for (const Constant* constant : {&kTwo, &kIdentityFrom}) bind(constant->id, &constant->value);
  return fe::VariantPackBuilder()
      .setDataPointers(static_cast<std::int64_t>(pointers.size()), pointers.data())
      .setUids(static_cast<std::int64_t>(ids.size()), ids.data())
      .setWorkspacePointer(operands.workspace)
      .build();
}

}  // namespace convmish
