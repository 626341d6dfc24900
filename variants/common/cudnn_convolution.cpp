// Plan search and launch on cudnn-frontend's descriptor classes.
#include "variants/common/cudnn_convolution.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <limits>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/shape_text.hpp"
#include "gpu/check.hpp"
#include "gpu/stopwatch.hpp"
#include "variants/common/cudnn_library.hpp"
#include "variants/common/cudnn_rounding_probe.hpp"
#include "variants/common/device_memory.hpp"

namespace convmish {
namespace {

constexpr std::size_t kWorkspaceAlignment = 1024;  // bytes, as the tool's own allocations
// Of each plan, after a warm-up, and of those that come near the fastest of these again.
constexpr int kTrials = 3, kFinalTrials = 7;
constexpr double kNear = 1.1, kHopeless = 2.0;  // times the fastest; one hopeless run ends a plan's trials
constexpr double kLeadUs = 2000;                // more than a host takes to enqueue the kernels of a plan

/// Throws cudnnException where cuDNN rejects the pointers.
cudnnStatus_t execute(const CudnnConvolution& convolution, const ConvolutionOperands& operands,
                      Stream stream) {
  const auto pack = variant_pack(convolution.graph, operands);
  return fe::detail::execute(cudnn_handle_on(stream), convolution.plan->get_raw_desc(), pack.get_raw_desc());
}

std::size_t tensor_bytes(std::int64_t elements) {
  return sizeof(float) * static_cast<std::size_t>(elements);
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

  /// Whether there is room; data() is then at least so large.
  bool grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    if (bytes + reserved_bytes_ > free_bytes_) return false;
    data_.reset();  // before the larger one: both might not fit
    data_ = allocate_device_memory(bytes);
    bytes_ = data_ ? bytes : 0;
    return data_ != nullptr;
  }
  void* data() const { return data_.get(); }

  OutOfMemory no_room_for(std::size_t bytes) const {
    return {static_cast<std::int64_t>(bytes + reserved_bytes_), static_cast<std::int64_t>(free_bytes_)};
  }

 private:
  DeviceMemory data_;
  std::size_t bytes_ = 0, reserved_bytes_ = 0, free_bytes_ = 0;
};

/// Tries what cuDNN proposes, one engine configuration after the other, and keeps the fastest: of those that
/// come near it the one that is so when they take turns, as variants do when they are timed. A plan that runs
/// again and again can be several percent faster than between others.
class PlanSearch {
 public:
  PlanSearch(const Problem& problem, MathClass math, const ConvolutionGraph& graph)
      : problem_(problem),
        math_(math),
        graph_(graph),
        workspace_(tensor_bytes(problem.shape.x_elements()) + tensor_bytes(problem.shape.y_elements())),
        probe_(problem.shape, graph.epilogue, problem.stream),
        stopwatch_(problem.stream) {}

  void try_all(fe::OperationGraph& graph) {
    std::vector<fe::ManagedOpaqueDescriptor> configs;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      add_proposed(graph, mode, configs);
    add_each_engine(graph, configs);
    std::erase_if(configs, [this](const auto& config) {
      const char* const reason = objection(config->get_backend_descriptor(), math_);
      if (reason) leave_out(reason);
      return reason != nullptr;
    });
    // Where no time is taken, any plan of the class will do.
    const std::size_t at_once = problem_.timed ? std::max(1u, std::thread::hardware_concurrency()) : 1;
    const auto enough = [this] { return !problem_.timed && !candidates_.empty(); };
    for (std::size_t first = 0; first < configs.size() && !enough(); first += at_once)
      for (BuiltPlan& built : build(
               std::span(configs).subspan(first, std::min(at_once, configs.size() - first)), graph.getTag()))
        try_plan(std::move(built), graph.getTag());
  }

  /// Throws where no plan was found.
  CudnnConvolution result() {
    if (candidates_.empty()) throw_none();
    for (const Candidate& candidate : candidates_)
      record_.timed.push_back(
          {candidate.convolution.note, candidate.convolution.workspace_bytes, candidate.time_ms});
    std::erase_if(candidates_, [this](const Candidate& one) { return one.time_ms > kNear * fastest_ms_; });
    if (candidates_.size() > 1) run_final();
    Candidate& best = *std::ranges::min_element(candidates_, {}, &Candidate::time_ms);
    best.convolution.note += problem_.timed ? fmt::format(", fastest of {} cuDNN plans", record_.timed.size())
                                            : ", the first of its class that cuDNN proposes";
    best.convolution.search = std::move(record_);
    return std::move(best.convolution);
  }

 private:
  struct BuiltPlan {
    std::shared_ptr<fe::ExecutionPlan> plan;
    std::string refusal;  // where there is none
  };

  struct Candidate {
    CudnnConvolution convolution;
    double time_ms;
  };

  /// The configurations that cuDNN's heuristics propose, likely best first.
  void add_proposed(fe::OperationGraph& graph, cudnnBackendHeurMode_t mode,
                    std::vector<fe::ManagedOpaqueDescriptor>& configs) {
    try {
      auto heuristics = fe::EngineHeuristicsBuilder_v8().setOperationGraph(graph).setHeurMode(mode).build();
      for (const auto& config : heuristics.getEngineConfig(heuristics.getEngineConfigCount()))
        configs.push_back(config);
    } catch (const fe::cudnnException& refusal) {
      note_refusal(one_line(refusal.what()));
    }
  }

  /// Every engine there is for the graph, with its default knobs: the heuristics leave some out that are
  /// fast.
  void add_each_engine(const fe::OperationGraph& graph, std::vector<fe::ManagedOpaqueDescriptor>& configs) {
    const std::int64_t engines = graph.getEngineCount();
    for (std::int64_t index = 0; index < engines; ++index) {
      try {
        const auto engine = fe::EngineBuilder_v8().setOperationGraph(graph).setGlobalEngineIdx(index).build();
        configs.push_back(fe::EngineConfigBuilder_v8().setEngine(engine).build().get_desc());
      } catch (const fe::cudnnException& refusal) {
        note_refusal(one_line(refusal.what()));
      }
    }
  }

  /// A thread each: cuDNN compiles the kernels of a fused graph, for half a second and more a plan.
  static std::vector<BuiltPlan> build(std::span<const fe::ManagedOpaqueDescriptor> configs,
                                      const std::string& graph_tag) {
    int device = 0;
    CONVMISH_CHECK_CUDA(cudaGetDevice(&device));
    std::vector<std::future<BuiltPlan>> under_way;
    for (const fe::ManagedOpaqueDescriptor& config : configs)
      under_way.push_back(std::async(std::launch::async, [=]() -> BuiltPlan {
        CONVMISH_CHECK_CUDA(cudaSetDevice(device));  // a thread's own state
        try {
          return {std::make_shared<fe::ExecutionPlan>(
                      fe::ExecutionPlanBuilder().setEngineConfig(config, graph_tag).build()),
                  {}};
        } catch (const fe::cudnnException& refusal) {
          return {nullptr, one_line(refusal.what())};
        }
      }));
    std::vector<BuiltPlan> built;
    for (auto& one : under_way) built.push_back(one.get());
    return built;
  }

  void try_plan(BuiltPlan built, const std::string& graph_tag) {
    if (!built.plan) {
      note_refusal(built.refusal);
      return leave_out("cannot be built");
    }
    CudnnConvolution candidate;
    candidate.plan = std::move(built.plan);
    if (!tags_.insert(candidate.plan->getTag()).second) return;  // proposed before

    candidate.workspace_bytes = static_cast<std::size_t>(candidate.plan->getWorkspaceSize());
    candidate.graph = graph_;
    candidate.algorithm = algorithm_of(*candidate.plan);
    candidate.note = candidate.plan->getTag().substr(graph_tag.size());
    if (const auto arithmetic = arithmetic_of(*candidate.plan); !arithmetic.empty())
      candidate.note += fmt::format(" ({})", fmt::join(arithmetic, ", "));
    if (!workspace_.grow_to(candidate.workspace_bytes)) {
      least_refused_bytes_ = std::min(least_refused_bytes_, candidate.workspace_bytes);
      return leave_out("needs more workspace than there is");
    }

    // The first launch warms up too: it loads the kernels.
    if (const cudnnStatus_t status =
            execute(candidate, probe_.single_products(problem_.y, workspace_.data()), problem_.stream);
        status != CUDNN_STATUS_SUCCESS)
      return leave_out(fmt::format("cannot be launched: {}", fe::detail::get_error_string(status)));
    // A transform does not multiply the multiplicands themselves.
    if (candidate.algorithm == Algorithm::direct) {
      if (probe_.truncates(problem_.y)) return leave_out("truncates multiplicands");
      if (probe_.shows_sums()) {
        check_cudnn(execute(candidate, probe_.integers(problem_.y, workspace_.data()), problem_.stream),
                    "cudnnBackendExecute");
        if (!probe_.gives_integers(problem_.y)) return leave_out("makes sums of integers that are none");
      }
    }

    const double time_ms = time_trials(candidate);
    fastest_ms_ = std::min(fastest_ms_, time_ms);
    candidates_.push_back({std::move(candidate), time_ms});
  }

  /// As variants are timed: the device has all of the plan's kernels in its queue when it comes to them, and
  /// rests afterwards for as long as they took. With the host's gaps between them, or at the power limit, the
  /// order of the plans is another.
  double time_run(const CudnnConvolution& convolution) {
    const ConvolutionOperands operands{problem_.x, problem_.filter, problem_.bias, problem_.y,
                                       workspace_.data()};
    const double time_ms =
        stopwatch_.time_ms([&] { convolution.launch(operands, problem_.stream); }, kLeadUs);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(time_ms));
    return time_ms;
  }

  static double median(std::vector<double> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  /// Median, or the first run of a plan that cannot win.
  double time_trials(const CudnnConvolution& convolution) {
    std::vector<double> times;
    for (int i = 0; i < kTrials; ++i) {
      times.push_back(time_run(convolution));
      if (times.back() > kHopeless * fastest_ms_) return times.back();
    }
    return median(std::move(times));
  }

  void run_final() {
    std::vector<std::vector<double>> times(candidates_.size());
    for (int i = 0; i < kFinalTrials; ++i)
      for (std::size_t j = 0; j < candidates_.size(); ++j)
        times[j].push_back(time_run(candidates_[j].convolution));
    for (std::size_t j = 0; j < candidates_.size(); ++j) candidates_[j].time_ms = median(std::move(times[j]));
  }

  /// The first one is told: it answers cuDNN's own first choice.
  void note_refusal(const std::string& refusal) {
    if (first_refusal_.empty()) first_refusal_ = refusal;
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
  ConvolutionGraph graph_;
  TrialWorkspace workspace_;
  RoundingProbe probe_;  // after workspace_, which has its memory's size set aside
  Stopwatch stopwatch_;
  std::set<std::string> tags_;  // of the plans built so far
  PlanSearchRecord record_;
  std::vector<Candidate> candidates_;
  double fastest_ms_ = std::numeric_limits<double>::infinity();
  std::size_t least_refused_bytes_ = std::numeric_limits<std::size_t>::max();
  std::string first_refusal_;
};

}  // namespace

void CudnnConvolution::launch(const ConvolutionOperands& operands, Stream stream) const try {
  check_cudnn(execute(*this, operands, stream), "cudnnBackendExecute");
} catch (const fe::cudnnException& error) {
  throw DeviceError(one_line(error.what()));
}

std::shared_ptr<const CudnnConvolution> fastest_cudnn_convolution(const Problem& problem, MathClass math,
                                                                  const ConvolutionGraph& graph) try {
  // Never destroyed, as the handle.
  using Key = std::tuple<std::string, MathClass, ConvolutionGraph, bool>;
  static auto& found = *new std::map<Key, std::shared_ptr<const CudnnConvolution>>;

  // The fastest serves a check as well, but not the other way round.
  const std::string shape = to_string(problem.shape);
  const auto fastest = found.find({shape, math, graph, true});
  if (fastest != found.end() && fastest->second) return fastest->second;
  auto& convolution = found[{shape, math, graph, problem.timed}];
  if (!convolution) {
    auto operations = operation_graph(problem.shape, graph, problem.stream);
    PlanSearch search(problem, math, graph);
    search.try_all(operations);
    convolution = std::make_shared<const CudnnConvolution>(search.result());
  }
  return convolution;
} catch (const fe::cudnnException& error) {
  const std::string text = one_line(error.what());
  if (CUDNN_STATUS_CATEGORY(error.error_status) == CUDNN_STATUS_NOT_SUPPORTED) throw Unsupported(text);
  throw DeviceError(text);
}

CudnnWorkspace::CudnnWorkspace(const CudnnConvolution& convolution,
                               std::initializer_list<std::int64_t> tensor_elements)
    : convolution_bytes_(convolution.workspace_bytes) {
  for (const std::int64_t elements : tensor_elements) {
    offsets_.push_back(convolution_offset_);
    convolution_offset_ +=
        (tensor_bytes(elements) + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }
}

Variant cudnn_variant(Variant row, MathClass math, Plan (*prepare)(const Problem&, MathClass)) {
  row.device = DeviceKind::cuda;
  row.math = math;
  row.pipe = Pipe::unknown;  // the plan decides
  row.supports = [](const Shape&, const DeviceInfo&) -> std::optional<std::string> {
    if (cudnn_loading_error().empty()) return std::nullopt;
    return cudnn_loading_error();
  };
  row.prepare = [prepare, math](const Problem& problem) { return prepare(problem, math); };
  return row;
}

}  // namespace convmish
