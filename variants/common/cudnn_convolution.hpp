// The convolution by cuDNN, for the variants that put their own activation behind it: the plan that is
// measured fastest among those whose rounding the math class allows.
//
// Tensors are fp32 NCHW, accumulation is fp32. Which plans a class allows follows from cuDNN's numerical
// notes of the plan's engine:
//   fp32  no tensor cores (on fp32 tensors they round multiplicands to TF32)
//   tf32  any
//   both  no inputs rounded to fp16 (it overflows at 65504), no accumulation below fp32, deterministic
// Winograd and FFT plans are allowed; CudnnConvolution::algorithm tells them apart.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/variant.hpp"

namespace cudnn_frontend {
class ExecutionPlan_v8;
}

namespace convmish {

/// What the cuDNN graph computes behind the products.
enum class ConvolutionEpilogue { none, bias };

/// What a plan search found.
struct PlanSearchRecord {
  struct TimedPlan {
    std::string name;  // engine and knobs, numerical notes
    std::size_t workspace_bytes = 0;
    double time_ms = 0;
  };
  std::vector<TimedPlan> timed;         // in the order of cuDNN's proposals
  std::map<std::string, int> left_out;  // reason -> number of proposals
};

/// A convolution planned for one shape. Independent of the tensors' addresses, which need an alignment of
/// 16 bytes, and of the device memory that the search used.
struct CudnnConvolution {
  std::shared_ptr<cudnn_frontend::ExecutionPlan_v8> plan;
  std::size_t workspace_bytes = 0;
  ConvolutionEpilogue epilogue = ConvolutionEpilogue::none;
  Algorithm algorithm = Algorithm::direct;
  std::string note;  // the plan's name and how many it was chosen from
  PlanSearchRecord search;

  struct Operands {
    const float* x = nullptr;
    const float* filter = nullptr;
    const float* bias = nullptr;  // ignored where the graph has none
    float* y = nullptr;
    void* workspace = nullptr;
  };
  void launch(const Operands& operands, Stream stream) const;
};

/// Searches at the first call for a shape, class and epilogue, on the problem's own x, filter and y; later
/// calls return the same plan. A plan's workspace must leave room for one more tensor of y's size, so that
/// variants that need one share the search with those that do not. Throws Unsupported with cuDNN's reason
/// where it offers no plan, OutOfMemory where none has room.
std::shared_ptr<const CudnnConvolution> fastest_cudnn_convolution(const Problem& problem, MathClass math,
                                                                  ConvolutionEpilogue epilogue);

/// The workspace of a variant that keeps one tensor of y's size beside the convolution's own: the tensor
/// comes first.
struct CudnnWorkspace {
  std::size_t tensor_bytes = 0;  // padded, so that what follows is aligned as the whole
  std::size_t convolution_bytes = 0;

  CudnnWorkspace(const Shape& shape, const CudnnConvolution& convolution);
  std::size_t bytes() const { return tensor_bytes + convolution_bytes; }
  float* tensor(void* workspace) const { return static_cast<float*>(workspace); }
  void* convolution(void* workspace) const { return static_cast<std::byte*>(workspace) + tensor_bytes; }
};

/// A row of the registry with what all variants on cuDNN share filled in.
Variant cudnn_variant(Variant row, MathClass math, Plan (*prepare)(const Problem&, MathClass));

}  // namespace convmish
