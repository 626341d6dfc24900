// What the tool finds out, as plain data: the one model that the table, the JSON report and every other
// output are made from. Names are those of the report (configs/schema/report.schema.json).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "core/variant.hpp"
#include "core/words.hpp"

namespace convmish {

/// One output by its coordinate, with what was found and what was expected there.
struct OutputAt {
  std::int64_t n = 0, k = 0, p = 0, q = 0;
  double found = 0, expected = 0;
  double pre_activation = 0;
};

/// The comparison of one output tensor with the float64 reference.
struct ErrorSummary {
  std::int64_t compared = 0;
  std::int64_t wrong = 0;        // outputs that the acceptance rule rejects
  std::int64_t nan_outputs = 0;  // NaN where the reference is not
  double worst_ratio = 0;        // error / allowed error; the rule is kept where <= 1
  double p999_ratio = 0;         // 99.9 % of the outputs stay at or below this
  double max_abs = 0;
  double max_rel = 0;  // over outputs with |expected| >= FLT_MIN
  double max_ulp = 0;
  // Where the fill is `delta`, and so z a number that was drawn: the largest ULP, flushed subnormals aside,
  // and where; the z nearest to 0 whose output should be finite and is not.
  std::optional<double> activation_ulp, activation_ulp_z, first_nonfinite_z;
  // |y - f(z)|_F / |f(z)|_F over finite outputs; NaN where y is right and none is a number other than 0
  double relative_frobenius = 0;
  std::optional<double> fingerprint;  // R, where the fill is `normal`
  std::string consistent_with;        // math class that R shows; empty where R was not taken
  double zero_accepted_share = 0;     // share of outputs at which an output of 0 would pass
  std::optional<OutputAt> worst_at, first_wrong_at;
};

/// What all wrong outputs have in common: a coordinate from `first` to `last`, or, where there is a period,
/// one whose remainder by the period is.
struct WrongPlace {
  Axis axis = Axis::q;
  std::int64_t first = 0, last = 0;
  std::optional<std::int64_t> period;
};

/// Why a check failed, as far as the output shows it. Shares are of all outputs.
struct Forensics {
  double wrong_share = 0, nan_share = 0;
  double poison_share = 0;         // not written: the bits of before the launch
  std::vector<WrongPlace> places;  // empty: all over y
  /// All sampled outputs whose pre-activation is beyond this are wrong, all others right.
  std::optional<double> wrong_above_z, wrong_below_z;
  std::vector<std::string> matches;  // known mistakes that give the wrong outputs, the likeliest first
  bool matches_everywhere = false;   // and the right ones too: the mistake is made at every output
};

/// The check of one variant on one shape with one fill.
struct FillResult {
  std::optional<Fill> fill;  // nothing where the tensors were given, not drawn
  std::uint64_t seed = 0;
  std::int64_t batch = 0;  // images checked: the shape's n, or fewer
  Verdict verdict = Verdict::passed;
  std::string reason;  // machine-readable, see run/reasons.hpp; empty when passed
  std::string detail;  // one line for people
  /// Whether a second run, from another poison, gave the same bits; nothing where there was none.
  std::optional<bool> repeatable;
  /// Outputs that the variant's fast way could not serve and that it computed anew, by its own account;
  /// nothing where it recomputes none, ever.
  std::optional<std::int64_t> recomputed_outputs;
  ErrorSummary error;
  std::optional<Forensics> forensics;  // where outputs are wrong
};

/// What a tolerance that was asked for says of an output: told beside the verdict, which it never changes.
struct ToleranceResult {
  std::string name;  // as --tolerance takes it
  Fill fill = Fill::kernelbench;
  std::string against;  // "float64": the reference; "tf32": what a framework's TF32 convolution gives
  std::int64_t compared = 0, violations = 0;
  double max_abs = 0;
  Verdict verdict = Verdict::passed;  // failed with one violation
};

/// What a device tells of its clocks at a moment; absent: it does not tell.
struct ClockState {
  std::optional<int> sm_mhz;  // of the multiprocessors
  std::optional<double> power_w;
  std::optional<int> temperature_c;
  std::vector<ClockLimit> limits;  // in force, in the order of their words

  bool operator==(const ClockState&) const = default;
};

/// Readings around the rounds of a case's timed launches, in columns; one wherever something had changed.
struct ClockTrace {
  std::vector<std::int64_t> before_sample;  // holds from the sample of this index on
  std::vector<std::optional<int>> sm_mhz;
  std::vector<std::optional<double>> power_w;
  std::vector<std::optional<int>> temperature_c;
  std::vector<std::vector<ClockLimit>> limits;
};

/// Statistics of one case's timed launches, milliseconds.
struct TimeSummary {
  double median = 0, mean = 0, min = 0, p5 = 0, p95 = 0, stddev = 0;
  std::optional<std::array<double, 2>> ci95;  // of the median; absent below six samples
  bool converged = false;                     // the interval is as narrow as asked
  std::optional<Cache> cache;                 // absent in reports before 1.2
  // Of the time between two launches, the share in which the GPU was to work. Absent on a CPU and in reports
  // before 1.3: without rests.
  std::optional<double> duty_cycle;
  std::int64_t host_gaps = 0;   // samples in which the device may have waited for the host
  std::vector<double> samples;  // in launch order
};

namespace reason {
/// Of a case that is `skipped` as the run ended before it did. The other reasons: run/reasons.hpp.
inline constexpr std::string_view interrupted = "interrupted";
}  // namespace reason

/// Which of a variant's configurations a case ran with.
struct ConfigurationChoice {
  /// A configuration by its time.
  struct Timed {
    std::string name;
    double median_ms = 0;
  };

  std::string name;
  ChosenBy by = ChosenBy::rule;
  std::vector<Timed> timed;  // where the times decided: of all that can compute the shape
};

/// One variant on one shape on one device.
struct CaseResult {
  std::string variant;
  MathClass math_class = MathClass::fp32;
  Layout layout = Layout::nchw;
  DeviceKind device = DeviceKind::cuda;
  bool emulated = false;  // a GPU kernel run by the SIMT executor: its time says nothing of a GPU
  Shape shape;
  std::uint64_t seed = 0;
  std::vector<Fill> fills;
  Verdict verdict = Verdict::passed;
  std::string reason;
  std::string detail;
  std::vector<FillResult> checks;  // empty when not checked
  std::vector<ToleranceResult> tolerances;
  std::optional<TimeSummary> time_ms;  // absent when not timed
  std::optional<ClockTrace> clocks;    // absent when not timed, and where the device does not tell
  std::string noise;        // what makes the time uncertain: clocks that moved or were held down; else empty
  bool remeasured = false;  // the first timing was noisy: what is told is of a second
  std::optional<double> floor_ms, percent_of_floor;
  std::string binding_ceiling;    // empty where no floor is known
  std::optional<double> speedup;  // against the baseline variant of the same class
  std::optional<double> prepare_ms;
  std::optional<std::int64_t> workspace_bytes, plan_bytes;
  std::optional<LaunchGeometry> launch;
  Algorithm algorithm = Algorithm::direct;
  std::optional<ConfigurationChoice> configuration;  // absent where there is nothing to choose, or none was
  std::string note;                                  // what the plan chose
  std::vector<std::string> remarks;                  // what to know beside the verdict, a line each
  std::string repeat;                                // the command line that repeats this case
};

/// The machine, as far as a reader of the report needs it to believe or repeat a figure. Empty: not known.
struct Environment {
  DeviceInfo device;
  std::string driver, cuda_runtime, cudnn, onednn;
  std::string host_cpu, operating_system, compiler, cuda_compiler, build_type;
  std::string tool_version, git_revision;
  std::string command_line, started_at;  // ISO 8601, UTC
};

}  // namespace convmish
