#include "sample_reports.hpp"

#include <limits>

namespace convmish::testing {
namespace {

constexpr Shape kHeadline{.n = 64, .c = 64, .h = 256, .w = 256, .k = 128};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TimeSummary time_around(double median) {
  TimeSummary time{.median = median,
                   .mean = median * 1.001,
                   .min = median * 0.995,
                   .p5 = median * 0.996,
                   .p95 = median * 1.01,
                   .stddev = median * 0.003,
                   .ci95 = {{median * 0.998, median * 1.002}},
                   .converged = true,
                   .cache = Cache::hot,
                   .duty_cycle = 0.5,
                   .samples = {}};
  for (const double factor : {1.01, 0.995, 1.0, 0.999, 1.002, 1.0}) time.samples.push_back(median * factor);
  return time;
}

ErrorSummary small_error(double ratio, double max_abs) {
  return {.compared = kHeadline.y_elements(),
          .worst_ratio = ratio,
          .p999_ratio = ratio / 3,
          .max_abs = max_abs,
          .max_rel = max_abs * 7,
          .max_ulp = 5.5,
          .relative_frobenius = max_abs / 4,
          .zero_accepted_share = 0.0009765625,
          .worst_at = OutputAt{.n = 63,
                               .k = 2,
                               .p = 253,
                               .q = 0,
                               .found = 0.1,
                               .expected = 0.1 + max_abs,
                               .pre_activation = -0.0}};
}

Environment h200_environment() {
  Environment environment;
  environment.device = {.kind = DeviceKind::cuda,
                        .name = "NVIDIA H200",
                        .uuid = "GPU-00000000-0000-0000-0000-000000000000",
                        .compute_major = 9,
                        .multiprocessors = 132,
                        .memory_bytes = 150'000'000'000,
                        .l2_bytes = 62'914'560,
                        .max_shared_bytes = 232'448};
  environment.driver = "580.95";
  environment.cuda_runtime = "13.0";
  environment.cudnn = "9.19.0";
  environment.host_cpu = "A processor";
  environment.operating_system = "Linux";
  environment.compiler = "GNU 12.2.0";
  environment.cuda_compiler = "NVIDIA 13.0.88";
  environment.build_type = "Release";
  environment.tool_version = "0.1.0";
  environment.git_revision = "0123456789ab";
  environment.command_line = "convmish-bench --variant all";
  environment.started_at = "2026-02-03T04:05:06Z";
  return environment;
}

/// Without cuBLAS: no tensor rate was measured.
DeviceCeilings h200_ceilings() {
  return {.measured = {.rates = {.dram_bytes = 4.22e12, .ffma_flops = 60.5e12, .special_functions = 4.2e12},
                       .gap = "tensor rates not measured: cuBLAS cannot be loaded"},
          .measured_at = "2026-02-01T04:05:06Z",
          .data_sheet = {.dram_bytes = 4.8e12,
                         .ffma_flops = 67e12,
                         .tensor_tf32_flops = 494.5e12,
                         .tensor_fp16_flops = 989.5e12}};
}

ReportPlan headline_plan() {
  ReportPlan plan;
  plan.options.variants = {"all"};
  plan.options.shapes = {kHeadline};
  plan.options.fills = {Fill::kernelbench, Fill::normal};
  plan.options.tolerances = {{.kind = Tolerance::Kind::kernelbench},
                             {.kind = Tolerance::Kind::allclose, .rtol = 1e-4, .atol = 1e-5}};
  plan.options.timing = {.max_time_s = 5};
  plan.device_reason = "auto: the first CUDA device";
  plan.shape_reason = "default: the headline shape";
  plan.baseline = "cudnn_unfused";
  return plan;
}

}  // namespace

CaseResult passed_case(const std::string& variant, MathClass math_class, double median_ms) {
  const bool fp32 = math_class == MathClass::fp32;
  CaseResult result;
  result.variant = variant;
  result.math_class = math_class;
  result.shape = kHeadline;
  result.seed = 42;
  result.fills = {Fill::kernelbench, Fill::normal};
  FillResult first{.fill = Fill::kernelbench,
                   .seed = 42,
                   .batch = 64,
                   .reason = {},
                   .detail = {},
                   .repeatable = true,
                   .error = small_error(0.25, fp32 ? 1.9e-6 : 4.2e-4)};
  FillResult second{.fill = Fill::normal,
                    .seed = 42,
                    .batch = 2,
                    .reason = {},
                    .detail = {},
                    .repeatable = true,
                    .error = small_error(0.5, fp32 ? 2.5e-6 : 6.1e-4)};
  second.error.fingerprint = fp32 ? 0.004 : 0.74;
  second.error.consistent_with = fp32 ? "fp32" : "tf32 or fp16, rounded to nearest";
  result.checks = {first, second};
  result.time_ms = time_around(median_ms);
  result.floor_ms = 0.756;
  result.percent_of_floor = 100 * 0.756 / median_ms;
  result.binding_ceiling = "dram";
  result.speedup = 7.8 / median_ms;
  result.prepare_ms = 1.5;
  result.workspace_bytes = 0;
  result.plan_bytes = 294'912;
  result.launch = LaunchGeometry{.grid = {2'064'512, 1, 1},
                                 .block = {256, 1, 1},
                                 .registers = 40,
                                 .local_bytes = 0,
                                 .blocks_per_multiprocessor = 6};
  result.repeat = "convmish-bench --variant " + variant + ":" + std::string(to_string(math_class));
  return result;
}

CaseResult failed_case(const std::string& variant, MathClass math_class) {
  CaseResult result = passed_case(variant, math_class, 1);
  result.verdict = Verdict::failed;
  result.reason = "outside_tolerance";
  result.detail = "fill normal: 254 of 16516096 outputs are wrong, 254 of them NaN; all in column q - 1";
  FillResult& check = result.checks.back();
  check.verdict = Verdict::failed;
  check.reason = result.reason;
  check.detail = "254 of 16516096 outputs are wrong, 254 of them NaN; all in column q - 1";
  check.repeatable = false;
  check.error.wrong = check.error.nan_outputs = 254;
  check.error.worst_ratio = check.error.p999_ratio = kInf;
  check.error.worst_at =
      OutputAt{.n = 0, .k = 3, .p = 0, .q = 253, .found = kNaN, .expected = 0.25, .pre_activation = -kInf};
  check.error.first_wrong_at = check.error.worst_at;
  check.forensics = Forensics{.wrong_share = 254.0 / kHeadline.y_elements(),
                              .nan_share = 254.0 / kHeadline.y_elements(),
                              .places = {{Axis::q, 253, 253, {}}, {Axis::p, 8, 15, 32}},
                              .wrong_above_z = 44.25,
                              .matches = {"bias left out"},
                              .matches_everywhere = true};
  result.time_ms.reset();
  result.floor_ms = result.percent_of_floor = result.speedup = std::nullopt;
  result.binding_ceiling.clear();
  return result;
}

CaseResult skipped_case(const std::string& variant, MathClass math_class) {
  CaseResult result;
  result.variant = variant;
  result.math_class = math_class;
  result.shape = kHeadline;
  result.seed = 42;
  result.fills = {Fill::kernelbench, Fill::normal};
  result.verdict = Verdict::skipped;
  result.reason = "out_of_memory";
  result.detail = "needs 9200000000 bytes of device memory, 8000000000 are free";
  return result;
}

Report small_report() {
  return {.environment = h200_environment(),
          .ceilings = h200_ceilings(),
          .plan = headline_plan(),
          .cases = {failed_case("tiled", MathClass::fp32)}};
}

Report gpu_report() {
  Report report{
      .environment = h200_environment(), .ceilings = h200_ceilings(), .plan = headline_plan(), .cases = {}};
  auto& cases = report.cases;
  const auto add = [&](const char* name, MathClass math, double ms) -> CaseResult& {
    return cases.emplace_back(passed_case(name, math, ms));
  };
  add("naive", MathClass::fp32, 91.8).binding_ceiling = "ffma";
  add("tiled", MathClass::fp32, 145.2).tolerances = {
      {"kernelbench", Fill::kernelbench, "float64", 10'485'760, 0, 1.9e-6, Verdict::passed},
      {"kernelbench", Fill::kernelbench, "tf32", 10'485'760, 812, 4.5e-4, Verdict::failed},
      {"rtol=0.0001,atol=1e-05", Fill::normal, "float64", 2'064'512, 0, 2.5e-6, Verdict::passed}};
  add("coarsened_1x2", MathClass::fp32, 106.04).configuration = {
      .name = "16x16", .by = ChosenBy::tuning, .timed = {{"8x16", 107.1}, {"16x16", 106}}};
  add("cudnn_unfused", MathClass::fp32, 12.31);
  add("cudnn_fused_mish", MathClass::fp32, 9.234).algorithm = Algorithm::transform;
  add("cudnn_unfused", MathClass::tf32, 7.8);
  CaseResult& vendor = add("cudnn_graph_fused", MathClass::tf32, 2.853);
  vendor.layout = Layout::nhwc;
  vendor.note = "engine 4, tile 128x128";
  CaseResult& noisy = add("hopper_fp16x1", MathClass::tf32, 1.2);
  noisy.checks[0].recomputed_outputs = 0;
  noisy.checks[1].recomputed_outputs = 768;
  noisy.time_ms->converged = false;
  noisy.time_ms->ci95 = {{1.1, 1.3}};
  noisy.clocks = ClockTrace{.before_sample = {0, 2, 6},
                            .sm_mhz = {1980, 1755, std::nullopt},
                            .power_w = {410.5, 698.25, 699},
                            .temperature_c = {51, 58, 58},
                            .limits = {{}, {ClockLimit::sw_power_cap, ClockLimit::hw_thermal}, {}}};
  noisy.noise = "the SM clock went from 1755 to 1980 MHz; clocks were held down (hw_thermal)";
  noisy.remeasured = true;
  CaseResult& split = add("hopper_fp16x3", MathClass::fp32, 2.79);
  split.time_ms->host_gaps = 3;
  split.remarks = {"no floor: the device's ceilings: out of memory"};

  cases.push_back(failed_case("register_blocked", MathClass::fp32));
  CaseResult& weak = add("cudnn_inplace_mish", MathClass::tf32, 4.3);
  weak.verdict = Verdict::mistrusted;
  weak.reason = "weak_data";
  weak.detail = "fill normal: an output of 0 would pass at 99.2 % of the outputs";
  weak.checks.back().verdict = Verdict::mistrusted;
  weak.checks.back().reason = weak.reason;
  weak.checks.back().detail = "an output of 0 would pass at 99.2 % of the outputs";
  weak.time_ms.reset();
  cases.push_back(skipped_case("cudnn_inplace_mish", MathClass::fp32));
  for (const auto& [name, verdict] :
       {std::pair("mine", Verdict::crashed), std::pair("mine_unrolled", Verdict::timed_out)}) {
    CaseResult& stopped = cases.emplace_back(skipped_case(name, MathClass::bf16));
    stopped.verdict = verdict;
    stopped.reason = verdict == Verdict::crashed ? "device_error" : "time_limit";
    stopped.detail =
        verdict == Verdict::crashed ? "cudaStreamSynchronize: cudaErrorIllegalAddress" : "ran 120 s";
    stopped.repeat = "convmish-bench --variant " + stopped.variant + ":bf16 --shape n64c64h256w256k128";
  }
  return report;
}

Report cpu_report() {
  Report report{.environment = h200_environment(), .plan = headline_plan(), .cases = {}};
  report.environment.device = {.name = "A processor", .multiprocessors = 2};
  report.environment.driver = report.environment.cuda_runtime = report.environment.cudnn = "";
  report.environment.onednn = "2.6.3";
  report.plan.options.shapes = {{.n = 1, .c = 16, .h = 34, .w = 34, .k = 32}};
  report.plan.options.seed = std::numeric_limits<std::uint64_t>::max();
  report.plan.options.timing.samples = 2;
  report.plan.options.timing.cache = Cache::cold;
  report.plan.baseline = "";
  for (const auto& [name, ms] : {std::pair("naive", 41.5), std::pair("onednn_fused", 0.0921)}) {
    CaseResult& result = report.cases.emplace_back(passed_case(name, MathClass::fp32, ms));
    result.device = DeviceKind::cpu;
    result.emulated = result.variant == "naive";
    result.shape = report.plan.options.shapes.front();
    result.seed = report.plan.options.seed;
    result.speedup = result.floor_ms = result.percent_of_floor = std::nullopt;
    result.binding_ceiling = "";
    result.time_ms->samples.resize(2);
    result.time_ms->ci95.reset();
    result.launch.reset();
    FillResult& activation = result.checks.emplace_back(result.checks.front());
    activation.fill = Fill::delta;
    activation.error.activation_ulp = 5.25;
    activation.error.activation_ulp_z = -1.25;
    if (result.emulated) activation.error.first_nonfinite_z = 44.5;
    // A transform cannot be judged on NaN and infinities: this check does not apply.
    result.checks.push_back({.fill = Fill::special,
                             .seed = 42,
                             .batch = 1,
                             .verdict = Verdict::skipped,
                             .reason = "not_applicable",
                             .detail = "a transform spreads NaN",
                             .error = {}});
  }
  return report;
}

Report untimed_report() {
  Report report;
  report.environment.compiler = "GNU 12.2.0";
  report.environment.build_type = "Debug";
  report.environment.tool_version = "0.1.0";
  report.environment.git_revision = "unknown";
  report.environment.command_line = "convmish-bench --no-check";
  report.environment.started_at = "2026-02-03T04:05:06Z";
  report.plan.options.fills = {Fill::kernelbench};
  report.cases.emplace_back();
  report.cases.back().variant = "naive";
  report.cases.back().shape = {.n = 1, .c = 1, .h = 3, .w = 3, .k = 1};
  return report;
}

Report given_report() {
  Report report{.environment = h200_environment(), .plan = headline_plan(), .cases = {}};
  report.plan.options.variants = {};
  report.plan.options.fills = {};
  report.plan.options.time = false;
  report.plan.shape_reason = "of the tensors";
  CaseResult& result = report.cases.emplace_back(failed_case("torch_eager", MathClass::fp32));
  result.fills = {};
  result.seed = 0;
  result.checks = {result.checks.back()};
  result.checks.front().fill.reset();
  result.checks.front().seed = 0;
  result.checks.front().repeatable.reset();
  return report;
}

std::map<std::string, Report> sample_reports() {
  return {{"small", small_report()},
          {"gpu", gpu_report()},
          {"cpu", cpu_report()},
          {"untimed", untimed_report()},
          {"given", given_report()}};
}

}  // namespace convmish::testing
