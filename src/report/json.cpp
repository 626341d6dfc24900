#include "report/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/clocks.hpp"
#include "core/error.hpp"
#include "core/input_text.hpp"
#include "core/json_node.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

using OrderedJson = nlohmann::ordered_json;  // written in the order of the descriptions below
using Json = nlohmann::json;

// --- The descriptions: every key, once, for both directions ---------------------------------------------
//
// `field(key, value)` writes a value or reads one back. Others: `known` is null where the value is 0, which
// no device has; `measured` is null, and read as the default, where it was not; `dotted` is "MAJOR.MINOR",
// null where both are 0; `milliseconds` is finite and no less than 0; `settled` is what an option came to,
// given or not; `derived` is written for the report's readers and follows from the rest; `group` is an object
// with no struct of its own; `added` came with a later minor version, and may be missing.

template <class T, class Described>
concept Is = std::same_as<std::remove_const_t<T>, Described>;

template <class Field>
void describe(Field& field, Is<Shape> auto& shape) {
  field("n", shape.n);
  field("c", shape.c);
  field("h", shape.h);
  field("w", shape.w);
  field("k", shape.k);
}

template <class Field>
void describe(Field& field, Is<DeviceInfo> auto& device) {
  field("kind", device.kind);
  field("index", device.index);
  field("name", device.name);
  field("uuid", device.uuid);
  field.dotted("compute_capability", device.compute_major, device.compute_minor);
  field.known("multiprocessors", device.multiprocessors);
  field.known("memory_bytes", device.memory_bytes);
  field.known("l2_bytes", device.l2_bytes);
  field.known("max_shared_bytes", device.max_shared_bytes);
}

template <class Field>
void describe(Field& field, Is<Environment> auto& environment) {
  field("device", environment.device);
  field("driver", environment.driver);
  field("cuda_runtime", environment.cuda_runtime);
  field("cudnn", environment.cudnn);
  field("onednn", environment.onednn);
  field("host_cpu", environment.host_cpu);
  field("operating_system", environment.operating_system);
  field("compiler", environment.compiler);
  field("cuda_compiler", environment.cuda_compiler);
  field("build_type", environment.build_type);
  field("command_line", environment.command_line);
  field("started_at", environment.started_at);
}

template <class Field>
void describe(Field& field, Is<TimingOptions> auto& timing) {
  field.settled("min_time_s", timing.min_time_s, timing.least_s());
  field.settled("max_time_s", timing.max_time_s, timing.most_s());
  field("ci_half_width", timing.ci_half_width);
  field("samples", timing.samples);
  field.added("cache", timing.cache);
  field.added("duty_cycle", timing.duty_cycle);
}

template <class Field>
void describe(Field& field, Is<ReportPlan> auto& plan) {
  field("variants", plan.options.variants);
  field("shapes", plan.options.shapes);
  field("fills", plan.options.fills);
  field.measured("seed", plan.options.seed, !plan.options.fills.empty());
  field.added("tolerances", plan.options.tolerances);
  field("check", plan.options.check);
  field("time", plan.options.time);
  field.measured("timing", plan.options.timing, plan.options.time);
  field("device_reason", plan.device_reason);
  field("shape_reason", plan.shape_reason);
  field("baseline", plan.baseline);
}

template <class Field>
void describe(Field& field, Is<OutputAt> auto& at) {
  field("n", at.n);
  field("k", at.k);
  field("p", at.p);
  field("q", at.q);
  field("found", at.found);
  field("expected", at.expected);
  field("pre_activation", at.pre_activation);
}

template <class Field>
void describe(Field& field, Is<ErrorSummary> auto& error) {
  field("compared", error.compared);
  field("wrong", error.wrong);
  field("nan_outputs", error.nan_outputs);
  field("worst_ratio", error.worst_ratio);
  field("p999_ratio", error.p999_ratio);
  field("max_abs", error.max_abs);
  field("max_rel", error.max_rel);
  field("max_ulp", error.max_ulp);
  field.added("activation_ulp", error.activation_ulp);
  field.added("activation_ulp_z", error.activation_ulp_z);
  field.added("first_nonfinite_z", error.first_nonfinite_z);
  field("relative_frobenius", error.relative_frobenius);
  field("fingerprint", error.fingerprint);
  field("consistent_with", error.consistent_with);
  field("zero_accepted_share", error.zero_accepted_share);
  field("worst_at", error.worst_at);
  field("first_wrong_at", error.first_wrong_at);
}

template <class Field>
void describe(Field& field, Is<WrongPlace> auto& place) {
  field("axis", place.axis);
  field("first", place.first);
  field("last", place.last);
  field("period", place.period);
}

template <class Field>
void describe(Field& field, Is<Forensics> auto& forensics) {
  field("wrong_share", forensics.wrong_share);
  field("nan_share", forensics.nan_share);
  field("poison_share", forensics.poison_share);
  field("places", forensics.places);
  field("wrong_above_z", forensics.wrong_above_z);
  field("wrong_below_z", forensics.wrong_below_z);
  field("matches", forensics.matches);
  field("matches_everywhere", forensics.matches_everywhere);
}

template <class Field>
void describe(Field& field, Is<ToleranceResult> auto& tolerance) {
  field("name", tolerance.name);
  field("fill", tolerance.fill);
  field("against", tolerance.against);
  field("compared", tolerance.compared);
  field("violations", tolerance.violations);
  field("max_abs", tolerance.max_abs);
  field("verdict", tolerance.verdict);
}

template <class Field>
void describe(Field& field, Is<FillResult> auto& check) {
  field("fill", check.fill);
  field.measured("seed", check.seed, check.fill.has_value());
  field("batch", check.batch);
  field("verdict", check.verdict);
  field("reason", check.reason);
  field("detail", check.detail);
  const bool ran = check.verdict != Verdict::skipped;
  field("repeatable", check.repeatable);
  field.added("recomputed_outputs", check.recomputed_outputs);
  field.measured("error", check.error, ran);
  field.added("forensics", check.forensics);
}

template <class Field>
void describe(Field& field, Is<TimeSummary> auto& time) {
  field.milliseconds("median", time.median);
  field.milliseconds("ci95", time.ci95);
  field.milliseconds("min", time.min);
  field.milliseconds("p5", time.p5);
  field.milliseconds("p95", time.p95);
  field.milliseconds("mean", time.mean);
  field.milliseconds("stddev", time.stddev);
  field("converged", time.converged);
  field.added("cache", time.cache);
  field.added("duty_cycle", time.duty_cycle);
  field.added("host_gaps", time.host_gaps);
  field.milliseconds("samples", time.samples);
}

template <class Field>
void describe(Field& field, Is<ClockTrace> auto& clocks) {
  field.derived("sm_mhz", [&] { return range_of(clocks.sm_mhz); });
  field.derived("power_w", [&] { return range_of(clocks.power_w); });
  field.derived("temperature_c", [&] { return range_of(clocks.temperature_c); });
  field.derived("limits", [&] { return limits_of(clocks); });
  field.group("trace", [&](auto& trace) {
    trace("before_sample", clocks.before_sample);
    trace("sm_mhz", clocks.sm_mhz);
    trace("power_w", clocks.power_w);
    trace("temperature_c", clocks.temperature_c);
    trace("limits", clocks.limits);
  });
}

template <class Field>
void describe(Field& field, Is<ConfigurationChoice::Timed> auto& timed) {
  field("name", timed.name);
  field.milliseconds("median_ms", timed.median_ms);
}

template <class Field>
void describe(Field& field, Is<ConfigurationChoice> auto& choice) {
  field("name", choice.name);
  field("chosen_by", choice.by);
  field("timed", choice.timed);
}

template <class Field>
void describe(Field& field, Is<LaunchGeometry> auto& launch) {
  field("grid", launch.grid);
  field("block", launch.block);
  field("cluster", launch.cluster);
  field("shared_bytes", launch.shared_bytes);
  field("registers", launch.registers);
  field("local_bytes", launch.local_bytes);
  field("blocks_per_multiprocessor", launch.blocks_per_multiprocessor);
}

/// The fill that the case's `error` is of; without a check, the one its launches were timed on.
std::optional<Fill> deciding_fill(const CaseResult& result) {
  if (const FillResult* check = deciding_check(result)) return check->fill;
  if (!result.fills.empty()) return result.fills.front();
  return std::nullopt;
}

std::optional<ErrorSummary> deciding_error(const CaseResult& result) {
  const FillResult* const check = deciding_check(result);
  if (check && check->verdict != Verdict::skipped) return check->error;
  return std::nullopt;
}

/// Unknown where no time was taken, or where the device tells nothing of its clocks.
std::optional<bool> is_noisy(const CaseResult& result) {
  if (!result.time_ms || !result.clocks) return std::nullopt;
  return !result.noise.empty();
}

template <class Field>
void describe(Field& field, Is<CaseResult> auto& result) {
  field("variant", result.variant);
  field("math_class", result.math_class);
  field("layout", result.layout);
  field("device", result.device);
  field("emulated", result.emulated);
  field("algorithm", result.algorithm);
  field("shape", result.shape);
  field.derived("fill", [&] { return deciding_fill(result); });
  field("fills", result.fills);
  field.measured("seed", result.seed, !result.fills.empty());
  field("verdict", result.verdict);
  field("reason", result.reason);
  field("detail", result.detail);
  field.derived("error", [&] { return deciding_error(result); });
  field("checks", result.checks);
  field.added("tolerances", result.tolerances);
  field("time_ms", result.time_ms);
  field.added("clocks", result.clocks);
  field.derived("noisy", [&] { return is_noisy(result); });
  field.added("noise", result.noise);
  field.added("remeasured", result.remeasured);
  field.milliseconds("floor_ms", result.floor_ms);
  field("binding_ceiling", result.binding_ceiling);
  field("percent_of_floor", result.percent_of_floor);
  field("speedup", result.speedup);
  field.milliseconds("prepare_ms", result.prepare_ms);
  field("workspace_bytes", result.workspace_bytes);
  field("plan_bytes", result.plan_bytes);
  field("launch", result.launch);
  field.added("configuration", result.configuration);
  field("note", result.note);
  field.added("remarks", result.remarks);
  field("repeat", result.repeat);
}

/// Each rate by name: as measured, and by the data sheet.
template <class Field>
void describe(Field& field, Is<DeviceCeilings> auto& ceilings) {
  const auto rate = [&](const char* key, std::optional<double> Ceilings::*member) {
    field.group(key, [&](auto& sources) {
      sources("measured", ceilings.measured.rates.*member);
      sources("data_sheet", ceilings.data_sheet.*member);
    });
  };
  rate("dram_bytes_per_s", &Ceilings::dram_bytes);
  rate("ffma_flops_per_s", &Ceilings::ffma_flops);
  rate("tensor_tf32_flops_per_s", &Ceilings::tensor_tf32_flops);
  rate("tensor_fp16_flops_per_s", &Ceilings::tensor_fp16_flops);
  rate("special_functions_per_s", &Ceilings::special_functions);
  field("gap", ceilings.measured.gap);
  field("measured_at", ceilings.measured_at);
}

template <class Field>
void describe(Field& field, Is<Report> auto& report) {
  field("schema_version", report.schema_version);
  field.group("tool", [&](auto& tool) {
    tool.derived("name", [] { return std::string(kToolName); });
    tool("version", report.environment.tool_version);
    tool("git_revision", report.environment.git_revision);
  });
  field("environment", report.environment);
  field.added("ceilings", report.ceilings);
  field("plan", report.plan);
  field("cases", report.cases);
}

// --- Writing ------------------------------------------------------------------------------------------

class Writer {
 public:
  template <class T>
  static OrderedJson object_of(const T& value) {
    Writer writer;
    describe(writer, value);
    return std::move(writer.object_);
  }

  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = json_of(value);
  }
  template <class T>
  void added(const char* key, const T& value) {
    (*this)(key, value);
  }
  template <class T>
  void milliseconds(const char* key, const T& value) {
    (*this)(key, value);
  }
  template <std::integral T>
  void known(const char* key, T value) {
    object_[key] = value == 0 ? OrderedJson() : OrderedJson(value);
  }
  void dotted(const char* key, int major, int minor) {
    object_[key] = major == 0 && minor == 0 ? OrderedJson() : OrderedJson(fmt::format("{}.{}", major, minor));
  }
  template <class T>
  void measured(const char* key, const T& value, bool is_measured) {
    object_[key] = is_measured ? json_of(value) : OrderedJson();
  }
  template <class T>
  void settled(const char* key, const std::optional<T>&, const T& value) {
    (*this)(key, value);
  }
  template <class Derive>
  void derived(const char* key, Derive derive) {
    object_[key] = json_of(derive());
  }
  template <class Describe>
  void group(const char* key, Describe describe_group) {
    Writer writer;
    describe_group(writer);
    object_[key] = std::move(writer.object_);
  }

 private:
  template <std::integral T>
  static OrderedJson json_of(T value) {
    return value;
  }
  static OrderedJson json_of(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  }
  static OrderedJson json_of(const std::string& value) {
    return value.empty() ? OrderedJson() : OrderedJson(value);
  }
  static OrderedJson json_of(const Tolerance& tolerance) { return to_string(tolerance); }
  static OrderedJson json_of(SchemaVersion version) {
    return fmt::format("{}.{}", version.major, version.minor);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static OrderedJson json_of(Enum value) { return std::string(to_string(value)); }
  template <class T>
  static OrderedJson json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : OrderedJson();
  }
  template <class T>
  static OrderedJson json_of(const std::vector<T>& values) {
    return array_of(values);
  }
  template <class T, std::size_t size>
  static OrderedJson json_of(const std::array<T, size>& values) {
    return array_of(values);
  }
  template <class T, std::size_t size>
  static OrderedJson json_of(const T (&values)[size]) {
    return array_of(values);
  }
  template <class T>
  requires std::is_class_v<T>
  static OrderedJson json_of(const T& value) { return object_of(value); }

  static OrderedJson array_of(const auto& values) {
    OrderedJson array = OrderedJson::array();
    for (const auto& value : values) array.push_back(json_of(value));
    return array;
  }

  OrderedJson object_ = OrderedJson::object();
};

// --- Reading ------------------------------------------------------------------------------------------

class Reader {
 public:
  template <class T>
  static void read_object(const JsonNode& node, T& value) {
    Reader reader(node);
    describe(reader, value);
  }

  template <class T>
  void operator()(const char* key, T& value) {
    read(member(key), value);
  }
  template <class T>
  void added(const char* key, T& value) {
    value = T();
    if (node_.value().contains(key)) read(member(key), value);
  }
  template <class T>
  void milliseconds(const char* key, T& value) {
    (*this)(key, value);
    want_milliseconds(node_.at(key), value);
  }
  template <std::integral T>
  void known(const char* key, T& value) {
    value = 0;
    if (const JsonNode node = member(key); !node.value().is_null()) read(node, value);
  }
  template <class T>
  void measured(const char* key, T& value, bool) {
    value = T();
    if (const JsonNode node = member(key); !node.value().is_null()) read(node, value);
  }
  void dotted(const char* key, int& major, int& minor) {
    major = minor = 0;
    if (const JsonNode node = member(key); !node.value().is_null())
      std::tie(major, minor) = read_dotted(node);
  }
  template <class T>
  void settled(const char* key, std::optional<T>& value, const T&) {
    (*this)(key, value);
  }
  template <class Derive>
  void derived(const char*, Derive) {}
  template <class Describe>
  void group(const char* key, Describe describe_group) {
    Reader reader(member(key));
    describe_group(reader);
  }

 private:
  explicit Reader(const JsonNode& node) : node_(node) {
    if (!node.value().is_object()) node.want("an object");
  }

  JsonNode member(const char* key) const {
    if (!node_.value().contains(key)) node_.fail(fmt::format("has no key \"{}\"", key));
    return node_.at(key);
  }

  static std::pair<int, int> read_dotted(const JsonNode& node) {
    if (node.value().is_string()) {
      const auto text = node.value().get<std::string>();
      const auto dot = std::min(text.find('.'), text.size());
      const auto major = read_integer(text.substr(0, dot));
      const auto minor = read_integer(text.substr(std::min(dot + 1, text.size())));
      if (major && minor && std::in_range<int>(*major) && std::in_range<int>(*minor) && *major >= 0 &&
          *minor >= 0)
        return {static_cast<int>(*major), static_cast<int>(*minor)};
    }
    node.want("\"MAJOR.MINOR\"");
  }

  static void read(const JsonNode& node, bool& value) {
    if (!node.value().is_boolean()) node.want("true or false");
    value = node.value().get<bool>();
  }
  template <std::integral T>
  static void read(const JsonNode& node, T& value) {
    const auto number = as_integer<T>(node.value());
    if (!number)
      node.want(fmt::format("an integer from {} to {}", std::numeric_limits<T>::min(),
                            std::numeric_limits<T>::max()));
    value = *number;
  }
  static void read(const JsonNode& node, double& value) {
    const Json& number = node.value();
    if (number.is_number())
      value = number.get<double>();
    else if (number == "nan")
      value = std::numeric_limits<double>::quiet_NaN();
    else if (number == "inf" || number == "-inf")
      value = number == "inf" ? HUGE_VAL : -HUGE_VAL;
    else
      node.want("a number, \"nan\", \"inf\" or \"-inf\"");
  }
  static void want_milliseconds(const JsonNode& node, double value) {
    if (!std::isfinite(value) || value < 0) node.want("a number of at least 0");
  }
  template <class T>
  static void want_milliseconds(const JsonNode& node, const std::optional<T>& value) {
    if (value) want_milliseconds(node, *value);
  }
  static void want_milliseconds(const JsonNode& node, const auto& values) {
    for (std::size_t i = 0; i < std::size(values); ++i) want_milliseconds(node.at(i), values[i]);
  }
  static void read(const JsonNode& node, std::string& value) {
    if (!node.value().is_null() && !node.value().is_string()) node.want("a string or null");
    value = node.value().is_null() ? std::string() : node.value().get<std::string>();
  }
  static void read(const JsonNode& node, Shape& shape) {
    read_object(node, shape);
    for (const Dimension& dimension : kDimensions)
      if (shape.*dimension.value < dimension.least)
        node.at(std::string(1, dimension.letter)).want(wanted(dimension));
    if (const auto why = check_shape(shape)) node.fail(*why);  // too large
  }
  static void read(const JsonNode& node, Tolerance& tolerance) {
    std::string text;
    read(node, text);
    tolerance = node.here([&] { return parse_tolerance(text); });
  }
  static void read(const JsonNode& node, SchemaVersion& version) {
    std::tie(version.major, version.minor) = read_dotted(node);
    if (version.major != kSchemaVersion.major) node.want(fmt::format("\"{}.x\"", kSchemaVersion.major));
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static void read(const JsonNode& node, Enum& value) {
    if (!node.value().is_string()) node.want(fmt::format("one of {}", fmt::join(spellings<Enum>(), ", ")));
    value = node.here([&] { return parse_word<Enum>(node.value().get<std::string>()); });
  }
  template <class T>
  static void read(const JsonNode& node, std::optional<T>& value) {
    value.reset();
    if (!node.value().is_null()) read(node, value.emplace());
  }
  template <class T>
  static void read(const JsonNode& node, std::vector<T>& values) {
    if (!node.value().is_array()) node.want("an array");
    values.resize(node.value().size());
    read_elements(node, values);
  }
  template <class T, std::size_t size>
  static void read(const JsonNode& node, std::array<T, size>& values) {
    read_elements(node, values);
  }
  template <class T, std::size_t size>
  static void read(const JsonNode& node, T (&values)[size]) {
    read_elements(node, values);
  }
  template <class T>
  requires std::is_class_v<T>
  static void read(const JsonNode& node, T& value) { read_object(node, value); }

  static void read_elements(const JsonNode& node, auto& values) {
    if (!node.value().is_array() || node.value().size() != std::size(values))
      node.want(fmt::format("an array of {}", std::size(values)));
    std::size_t i = 0;
    for (auto& value : values) read(node.at(i++), value);
  }

  JsonNode node_;
};

// --- Text ---------------------------------------------------------------------------------------------

std::string one_line(const OrderedJson& json) {
  // A path or a name that is not UTF-8 costs those characters, not the report.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Indented, but lists of plain values and small objects stay on one line: thousands of samples are a line
/// of the report, not thousands.
void print(const OrderedJson& json, const std::string& indent, std::string& out) {
  constexpr std::size_t kShortObject = 100;
  bool nested = false;
  if (json.is_structured())
    for (const OrderedJson& element : json) nested |= element.is_structured() && !element.empty();
  if (!nested) {
    std::string line = one_line(json);
    if (!json.is_object() || line.size() <= kShortObject) {
      out += line;
      return;
    }
  }
  const std::string inner = indent + "  ";
  bool first = true;
  out += json.is_object() ? '{' : '[';
  for (auto element = json.begin(); element != json.end(); ++element) {
    out += first ? "\n" : ",\n";
    first = false;
    out += inner;
    if (json.is_object()) out += one_line(OrderedJson(element.key())) + ": ";
    print(*element, inner, out);
  }
  out += "\n" + indent;
  out += json.is_object() ? '}' : ']';
}

template <class Object>
Object object_from_json(std::string_view text, const std::string& source) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) throw InputError(fmt::format("{}: not one JSON object", source));
  Object object;
  Reader::read_object(JsonNode(source, document), object);
  return object;
}

}  // namespace

std::string to_json(const Report& report) {
  std::string text;
  print(Writer::object_of(report), "", text);
  return text + "\n";
}

std::string to_json_line(const CaseResult& result) {
  return one_line(Writer::object_of(result));
}

Report read_report(const std::filesystem::path& path) {
  const std::string file = path.string();
  const Json document = parse_json_file(path);
  Report report;
  Reader::read_object(JsonNode(file, document), report);
  return report;
}

Report report_from_json(std::string_view text, const std::string& source) {
  return object_from_json<Report>(text, source);
}

CaseResult case_from_json(std::string_view text, const std::string& source) {
  return object_from_json<CaseResult>(text, source);
}

}  // namespace convmish
