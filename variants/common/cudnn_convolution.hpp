// The convolution by cuDNN, for the variants that put their own activation behind it: the plan that is
// measured fastest among those whose rounding the math class allows.
//
// Tensors are fp32, accumulation is fp32. Which plans a class allows follows from cuDNN's numerical
// notes of the plan's engine, and from a probe of what they do not tell (cudnn_rounding_probe.hpp):
//   fp32  no tensor cores (on fp32 tensors they round multiplicands to TF32)
//   tf32  any that rounds multiplicands to the nearest
//   both  no inputs rounded to fp16 (it overflows at 65504), no accumulation below fp32, deterministic;
//         of a direct plan that adds no activation: sums of integers are integers
// Winograd and FFT plans are allowed; CudnnConvolution::algorithm tells them apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/variant.hpp"
#include "variants/common/cudnn_graph.hpp"

namespace cudnn_frontend {
class ExecutionPlan_v8;
}

namespace convmish {

/// What a plan search found.
struct PlanSearchRecord {
  struct TimedPlan {
    std::string name;  // engine and knobs, numerical notes
    std::size_t workspace_bytes = 0;
    double time_ms = 0;
  };
  std::vector<TimedPlan> timed;         // alone; in the order of cuDNN's proposals
  std::map<std::string, int> left_out;  // reason -> number of proposals
};

/// A convolution planned for one shape. Independent of the tensors' addresses, which need an alignment of
/// 16 bytes, and of the device memory that the search used.
struct CudnnConvolution {
  std::shared_ptr<cudnn_frontend::ExecutionPlan_v8> plan;
  std::size_t workspace_bytes = 0;
  ConvolutionGraph graph;
  Algorithm algorithm = Algorithm::direct;
  std::string note;  // the plan's name and how it was chosen
  PlanSearchRecord search;

  void launch(const ConvolutionOperands& operands, Stream stream) const;
};

/// Searches at the first call for a shape, class and graph, on the problem's own tensors; later calls return
/// the same plan. Where the problem will not be timed, the first plan that may serve ends the search. Only
/// times depend on the tensors, so any memory of their sizes does. A plan's workspace must leave room for one
/// more tensor of x's size and one of y's, so that variants that keep such in the workspace share the search
/// with those that do not. Throws Unsupported with cuDNN's reason where it offers no plan, OutOfMemory where
/// none has room.
std::shared_ptr<const CudnnConvolution> fastest_cudnn_convolution(const Problem& problem, MathClass math,
                                                                  const ConvolutionGraph& graph);

/// The workspace of a variant that keeps tensors of its own beside the convolution's: they come first.
class CudnnWorkspace {
 public:
  CudnnWorkspace(const CudnnConvolution& convolution, std::initializer_list<std::int64_t> tensor_elements);

  std::size_t bytes() const { return convolution_offset_ + convolution_bytes_; }
  float* tensor(void* workspace, std::size_t index) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + offsets_[index]);
  }
  void* convolution(void* workspace) const {
    return static_cast<std::byte*>(workspace) + convolution_offset_;
  }

 private:
  std::vector<std::size_t> offsets_;    // bytes; each tensor is aligned as the whole
  std::size_t convolution_offset_ = 0;  // bytes
  std::size_t convolution_bytes_;
};

/// A row of the registry with what all variants on cuDNN share filled in.
Variant cudnn_variant(Variant row, MathClass math, Plan (*prepare)(const Problem&, MathClass));

}  // namespace convmish
