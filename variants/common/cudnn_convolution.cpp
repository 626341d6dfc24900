// Plan search and launch on cudnn-frontend's descriptor classes: they tell each plan's numerical notes, which
// the frontend's graph class keeps to itself.

// libcudnn.so.9 is opened at run time, so that the tool starts where it is missing.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include "variants/common/cudnn_convolution.hpp"

#include <cudnn.h>
#include <cudnn_frontend_ConvDesc.h>
#include <cudnn_frontend_Engine.h>
#include <cudnn_frontend_ExecutionPlan.h>
#include <cudnn_frontend_Filters.h>
#include <cudnn_frontend_Heuristics.h>
#include <cudnn_frontend_OperationGraph.h>
#include <cudnn_frontend_PointWiseDesc.h>
#include <cudnn_frontend_VariantPack.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/library_versions.hpp"
#include "core/shape_text.hpp"
#include "gpu/check.hpp"

namespace fe = cudnn_frontend;

void* fe::cudnn_dlhandle = nullptr;  // declared by the frontend, owned by whoever opens the library

namespace convmish {
namespace {

constexpr char kLibrary[] = "libcudnn.so.9";
constexpr std::int64_t kTensorAlignment = 16;      // bytes, promised to cuDNN
constexpr std::size_t kWorkspaceAlignment = 1024;  // bytes, as the tool's own allocations
constexpr int kTimedRuns = 5;                      // of each plan that may be the fastest, after a warm-up
constexpr double kHopeless = 2.0;  // a run this many times slower than the best ends the timing

// --- The library ------------------------------------------------------------------------------------------

/// Opens cuDNN at the first call. Empty if it is there, else why not.
const std::string& loading_error() {
  static const std::string error = []() -> std::string {
    fe::cudnn_dlhandle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (fe::cudnn_dlhandle) return {};
    return fmt::format("cuDNN cannot be loaded: {}; install cuDNN 9, or add its folder to LD_LIBRARY_PATH",
                       dlerror());
  }();
  return error;
}

std::string cudnn_version() {
  if (!loading_error().empty()) return {};
  const std::size_t version = fe::detail::get_backend_version();  // 91900 is 9.19.0
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

const RegisterLibraryVersion registered_version{"cudnn", cudnn_version};

/// cuDNN's texts may run over several lines; a message of the tool is one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(one_line(fmt::format("{}: {} ({})", call, fe::detail::get_error_string(status),
                                         fe::detail::get_last_error_string_())));
}

/// One handle a process, bound to the device that is current at the first call. Never destroyed: at exit the
/// CUDA context may be gone before it.
cudnnHandle_t handle_on(Stream stream) {
  static const cudnnHandle_t handle = [] {
    cudnnHandle_t created = nullptr;
    check_cudnn(fe::detail::create_handle(&created), "cudnnCreate");
    return created;
  }();
  check_cudnn(fe::detail::set_stream(handle, stream), "cudnnSetStream");
  return handle;
}

// --- The graph --------------------------------------------------------------------------------------------

enum TensorId : std::int64_t { kX = 'x', kFilter = 'w', kBias = 'b', kProducts = 'z', kY = 'y' };

fe::Tensor tensor(TensorId id, const std::array<std::int64_t, 4>& dims) {
  const std::array<std::int64_t, 4> strides{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  return fe::TensorBuilder()
      .setDataType(CUDNN_DATA_FLOAT)
      .setDim(4, dims.data())
      .setStride(4, strides.data())
      .setId(id)
      .setAlignment(kTensorAlignment)
      .setVirtual(id == kProducts)
      .build();
}

fe::OperationGraph convolution_graph(const Shape& shape, ConvolutionEpilogue epilogue, cudnnHandle_t handle) {
  const bool with_bias = epilogue == ConvolutionEpilogue::bias;
  const std::array<std::int64_t, 4> y_dims{shape.n, shape.k, shape.p(), shape.q()};
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
  const auto products = tensor(with_bias ? kProducts : kY, y_dims);
  const auto convolve = fe::OperationBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                            .setxDesc(tensor(kX, {shape.n, shape.c, shape.h, shape.w}))
                            .setwDesc(tensor(kFilter, {shape.k, shape.c, kFilterSize, kFilterSize}))
                            .setyDesc(products)
                            .setcDesc(convolution)
                            .setAlpha(1.0f)
                            .setBeta(0.0f)
                            .build();
  std::vector<const fe::Operation*> operations{&convolve};

  std::optional<fe::Operation> add_bias;
  if (with_bias) {
    add_bias = fe::OperationBuilder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
                   .setxDesc(products)
                   .setbDesc(tensor(kBias, {1, shape.k, 1, 1}))
                   .setyDesc(tensor(kY, y_dims))
                   .setpwDesc(fe::PointWiseDescBuilder()
                                  .setMode(CUDNN_POINTWISE_ADD)
                                  .setComputeType(CUDNN_DATA_FLOAT)
                                  .build())
                   .build();
    operations.push_back(&*add_bias);
  }
  return fe::OperationGraphBuilder()
      .setHandle(handle)
      .setOperationGraph(static_cast<std::int64_t>(operations.size()), operations.data())
      .build();
}

// --- Launch -----------------------------------------------------------------------------------------------

/// Throws cudnnException where cuDNN rejects the pointers.
cudnnStatus_t execute(const CudnnConvolution& convolution, const CudnnConvolution::Operands& operands,
                      Stream stream) {
  // cuDNN takes all pointers as writable; it writes to y and the workspace alone.
  std::array<void*, 4> pointers{const_cast<float*>(operands.x), const_cast<float*>(operands.filter),
                                operands.y, const_cast<float*>(operands.bias)};
  const std::array<std::int64_t, 4> ids{kX, kFilter, kY, kBias};
  const std::int64_t count = convolution.epilogue == ConvolutionEpilogue::bias ? 4 : 3;
  const auto pack = fe::VariantPackBuilder()
                        .setDataPointers(count, pointers.data())
                        .setUids(count, ids.data())
                        .setWorkspacePointer(operands.workspace)
                        .build();
  return fe::detail::execute(handle_on(stream), convolution.plan->get_raw_desc(), pack.get_raw_desc());
}

// --- The search -------------------------------------------------------------------------------------------

/// Why an engine may not compute in `math`, by its numerical notes; nothing if it may.
const char* objection(cudnnBackendDescriptor_t config, MathClass math) {
  if (fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS>(config)) return "rounds inputs to fp16";
  if (fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION>(config))
    return "accumulates below fp32";
  if (fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC>(config)) return "is not deterministic";
  if (math == MathClass::fp32 && fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_TENSOR_CORE>(config))
    return "rounds to tf32 on tensor cores";
  return nullptr;
}

/// Words for the numerical notes that say how a plan computes.
std::vector<std::string> arithmetic_of(const fe::ExecutionPlan& plan) {
  static const std::map<cudnnBackendNumericalNote_t, std::string> words{
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, "tensor cores"},
      {CUDNN_NUMERICAL_NOTE_FFT, "FFT"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, "tile 4x4"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, "tile 6x6"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, "tile 13x13"}};
  std::vector<std::string> found;
  for (const auto& [note, word] : words)
    if (std::ranges::count(plan.getAllNumericNotes(), note) > 0) found.push_back(word);
  return found;
}

/// Any Winograd plan carries a tile's note, the plain one, or both.
Algorithm algorithm_of(const fe::ExecutionPlan& plan) {
  return std::ranges::any_of(plan.getAllNumericNotes(),
                             [](cudnnBackendNumericalNote_t note) {
                               return note == CUDNN_NUMERICAL_NOTE_FFT ||
                                      (note >= CUDNN_NUMERICAL_NOTE_WINOGRAD &&
                                       note <= CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
                             })
             ? Algorithm::transform
             : Algorithm::direct;
}

/// Device memory for the plans under trial, grown to the largest. `reserved_bytes` of what is free are left.
class TrialWorkspace {
 public:
  explicit TrialWorkspace(std::size_t reserved_bytes) : reserved_bytes_(reserved_bytes) {
    std::size_t total_bytes = 0;
    CONVMISH_CHECK_CUDA(cudaMemGetInfo(&free_bytes_, &total_bytes));
  }
  ~TrialWorkspace() { (void)cudaFree(data_); }
  TrialWorkspace(const TrialWorkspace&) = delete;
  TrialWorkspace& operator=(const TrialWorkspace&) = delete;

  /// Whether there is room; data() is then at least so large.
  bool grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    if (bytes + reserved_bytes_ > free_bytes_) return false;
    (void)cudaFree(std::exchange(data_, nullptr));
    bytes_ = 0;
    const cudaError_t error = cudaMalloc(&data_, bytes);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // not sticky
      return false;
    }
    check_cuda(error, "cudaMalloc for the workspace of a cuDNN plan");
    bytes_ = bytes;
    return true;
  }
  void* data() const { return data_; }

  OutOfMemory no_room_for(std::size_t bytes) const {
    return {static_cast<std::int64_t>(bytes + reserved_bytes_), static_cast<std::int64_t>(free_bytes_)};
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0, reserved_bytes_ = 0, free_bytes_ = 0;
};

/// Milliseconds on the stream's own clock.
class Stopwatch {
 public:
  explicit Stopwatch(Stream stream) : stream_(stream) {
    CONVMISH_CHECK_CUDA(cudaEventCreate(&start_));
    CONVMISH_CHECK_CUDA(cudaEventCreate(&stop_));
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(start_);
    (void)cudaEventDestroy(stop_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  template <class Launch>
  double time_ms(const Launch& launch) {
    CONVMISH_CHECK_CUDA(cudaEventRecord(start_, stream_));
    launch();
    CONVMISH_CHECK_CUDA(cudaEventRecord(stop_, stream_));
    CONVMISH_CHECK_CUDA(cudaEventSynchronize(stop_));
    float ms = 0;
    CONVMISH_CHECK_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return static_cast<double>(ms);
  }

 private:
  Stream stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

/// Tries what cuDNN proposes, one engine configuration after the other, and keeps the fastest.
class PlanSearch {
 public:
  PlanSearch(const Problem& problem, MathClass math, ConvolutionEpilogue epilogue)
      : problem_(problem),
        math_(math),
        epilogue_(epilogue),
        workspace_(sizeof(float) * static_cast<std::size_t>(problem.shape.y_elements())),
        stopwatch_(problem.stream) {}

  void try_all(fe::OperationGraph& graph) {
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      try_list(graph, mode);
    try_each_engine(graph);
  }

  /// Throws where no plan was found.
  CudnnConvolution result() {
    if (!best_.plan) throw_none();
    best_.note = fmt::format("{}, fastest of {} cuDNN plans", best_.note, record_.timed.size());
    best_.search = std::move(record_);
    return std::move(best_);
  }

 private:
  /// The configurations that cuDNN's heuristics propose, likely best first.
  void try_list(fe::OperationGraph& graph, cudnnBackendHeurMode_t mode) {
    fe::EngineConfigList configs;
    try {
      auto heuristics = fe::EngineHeuristicsBuilder_v8().setOperationGraph(graph).setHeurMode(mode).build();
      configs = heuristics.getEngineConfig(heuristics.getEngineConfigCount());
    } catch (const fe::cudnnException& refusal) {
      note_refusal(refusal);
    }
    for (const fe::ManagedOpaqueDescriptor& config : configs) try_config(config, graph.getTag());
  }

  /// Every engine there is for the graph, with its default knobs: the heuristics leave some out that are
  /// fast.
  void try_each_engine(const fe::OperationGraph& graph) {
    const std::int64_t engines = graph.getEngineCount();
    for (std::int64_t index = 0; index < engines; ++index) {
      fe::ManagedOpaqueDescriptor config;
      try {
        const auto engine = fe::EngineBuilder_v8().setOperationGraph(graph).setGlobalEngineIdx(index).build();
        config = fe::EngineConfigBuilder_v8().setEngine(engine).build().get_desc();
      } catch (const fe::cudnnException& refusal) {
        note_refusal(refusal);
        continue;
      }
      try_config(config, graph.getTag());
    }
  }

  void try_config(const fe::ManagedOpaqueDescriptor& config, const std::string& graph_tag) {
    if (const char* reason = objection(config->get_backend_descriptor(), math_)) return leave_out(reason);

    CudnnConvolution candidate;
    try {
      candidate.plan = std::make_shared<fe::ExecutionPlan>(
          fe::ExecutionPlanBuilder().setEngineConfig(config, graph_tag).build());
    } catch (const fe::cudnnException& refusal) {
      note_refusal(refusal);
      return leave_out("cannot be built");
    }
    if (!tags_.insert(candidate.plan->getTag()).second) return;  // proposed before

    candidate.workspace_bytes = static_cast<std::size_t>(candidate.plan->getWorkspaceSize());
    candidate.epilogue = epilogue_;
    candidate.algorithm = algorithm_of(*candidate.plan);
    candidate.note = candidate.plan->getTag().substr(graph_tag.size());
    if (const auto arithmetic = arithmetic_of(*candidate.plan); !arithmetic.empty())
      candidate.note += fmt::format(" ({})", fmt::join(arithmetic, ", "));
    if (!workspace_.grow_to(candidate.workspace_bytes)) {
      least_refused_bytes_ = std::min(least_refused_bytes_, candidate.workspace_bytes);
      return leave_out("needs more workspace than there is");
    }

    const CudnnConvolution::Operands operands{problem_.x, problem_.filter, problem_.bias, problem_.y,
                                              workspace_.data()};
    // The first launch warms up too: it loads the kernels.
    if (const cudnnStatus_t status = execute(candidate, operands, problem_.stream);
        status != CUDNN_STATUS_SUCCESS)
      return leave_out(fmt::format("cannot be launched: {}", fe::detail::get_error_string(status)));
    CONVMISH_CHECK_CUDA(cudaStreamSynchronize(problem_.stream));

    const double time_ms = time_runs([&] { candidate.launch(operands, problem_.stream); });
    record_.timed.push_back({candidate.note, candidate.workspace_bytes, time_ms});
    if (time_ms < best_ms_) {
      best_ms_ = time_ms;
      best_ = std::move(candidate);
    }
  }

  /// Median of a few runs, or the first run of a plan that cannot win.
  template <class Launch>
  double time_runs(const Launch& launch) {
    std::array<double, kTimedRuns> times{};
    for (double& time : times) {
      time = stopwatch_.time_ms(launch);
      if (time > kHopeless * best_ms_) return time;
    }
    const auto median = times.begin() + kTimedRuns / 2;
    std::nth_element(times.begin(), median, times.end());
    return *median;
  }

  /// The first one is told: it answers cuDNN's own first choice.
  void note_refusal(const fe::cudnnException& refusal) {
    if (first_refusal_.empty()) first_refusal_ = one_line(refusal.what());
  }

  void leave_out(const std::string& reason) { ++record_.left_out[reason]; }

  [[noreturn]] void throw_none() const {
    if (least_refused_bytes_ < std::numeric_limits<std::size_t>::max())
      throw workspace_.no_room_for(least_refused_bytes_);
    std::string reasons;
    for (const auto& [reason, count] : record_.left_out) reasons += fmt::format("; {}: {}", reason, count);
    throw Unsupported(fmt::format("cuDNN {} has no plan of class {} for {}{}{}{}", cudnn_version(),
                                  to_string(math_), to_string(problem_.shape), reasons,
                                  first_refusal_.empty() ? "" : "; ", first_refusal_));
  }

  const Problem& problem_;
  MathClass math_;
  ConvolutionEpilogue epilogue_;
  TrialWorkspace workspace_;
  Stopwatch stopwatch_;
  std::set<std::string> tags_;  // of the plans built so far
  PlanSearchRecord record_;
  CudnnConvolution best_;
  double best_ms_ = std::numeric_limits<double>::infinity();
  std::size_t least_refused_bytes_ = std::numeric_limits<std::size_t>::max();
  std::string first_refusal_;
};

}  // namespace

void CudnnConvolution::launch(const Operands& operands, Stream stream) const try {
  check_cudnn(execute(*this, operands, stream), "cudnnBackendExecute");
} catch (const fe::cudnnException& error) {
  throw DeviceError(one_line(error.what()));
}

std::shared_ptr<const CudnnConvolution> fastest_cudnn_convolution(const Problem& problem, MathClass math,
                                                                  ConvolutionEpilogue epilogue) try {
  // Never destroyed, as the handle.
  using Key = std::tuple<std::string, MathClass, ConvolutionEpilogue>;
  static auto& found = *new std::map<Key, std::shared_ptr<const CudnnConvolution>>;

  auto& convolution = found[{to_string(problem.shape), math, epilogue}];
  if (!convolution) {
    auto graph = convolution_graph(problem.shape, epilogue, handle_on(problem.stream));
    PlanSearch search(problem, math, epilogue);
    search.try_all(graph);
    convolution = std::make_shared<const CudnnConvolution>(search.result());
  }
  return convolution;
} catch (const fe::cudnnException& error) {
  const std::string text = one_line(error.what());
  if (CUDNN_STATUS_CATEGORY(error.error_status) == CUDNN_STATUS_NOT_SUPPORTED) throw Unsupported(text);
  throw DeviceError(text);
}

CudnnWorkspace::CudnnWorkspace(const Shape& shape, const CudnnConvolution& convolution)
    : convolution_bytes(convolution.workspace_bytes) {
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(shape.y_elements());
  tensor_bytes = (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

Variant cudnn_variant(Variant row, MathClass math, Plan (*prepare)(const Problem&, MathClass)) {
  row.device = DeviceKind::cuda;
  row.math = math;
  row.layout = Layout::nchw;
  row.pipe = Pipe::unknown;  // the plan decides
  row.supports = [](const Shape&, const DeviceInfo&) -> std::optional<std::string> {
    if (loading_error().empty()) return std::nullopt;
    return loading_error();
  };
  row.prepare = [prepare, math](const Problem& problem) { return prepare(problem, math); };
  return row;
}

}  // namespace convmish
