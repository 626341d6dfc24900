#include "report/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>

#include "report/valid_text.hpp"

namespace convmish {
namespace {

/// A cell's text before it is quoted; doubles in the fewest digits that read back to the same bits.
template <class T>
std::string cell(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(to_string(value));
  else
    return fmt::format("{}", value);
}
template <class T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : std::string();
}

/// A member of the check that decided; empty where no check ran.
template <auto member>
std::string of_check(const Report&, const CaseResult& result) {
  const FillResult* const check = deciding_check(result);
  return check && check->verdict != Verdict::skipped ? cell(check->*member) : std::string();
}
template <auto member>
std::string of_error(const Report&, const CaseResult& result) {
  const FillResult* const check = deciding_check(result);
  return check && check->verdict != Verdict::skipped ? cell(check->error.*member) : std::string();
}
template <auto member>
std::string of_time(const Report&, const CaseResult& result) {
  return result.time_ms ? cell(result.time_ms.value().*member) : std::string();
}
template <std::size_t end>
std::string of_interval(const Report&, const CaseResult& result) {
  return result.time_ms && result.time_ms->ci95 ? cell((*result.time_ms->ci95)[end]) : std::string();
}
template <auto member>
std::string of_shape(const Report&, const CaseResult& result) {
  return cell(result.shape.*member);
}
template <auto member>
std::string of_case(const Report&, const CaseResult& result) {
  return cell(result.*member);
}

struct Column {
  std::string_view name;
  std::string (*text)(const Report&, const CaseResult&);
};

constexpr Column kColumns[] = {
    {"device", of_case<&CaseResult::device>},
    {"device_name", [](const Report& report, const CaseResult&) { return report.environment.device.name; }},
    {"variant", of_case<&CaseResult::variant>},
    {"math_class", of_case<&CaseResult::math_class>},
    {"layout", of_case<&CaseResult::layout>},
    {"emulated", of_case<&CaseResult::emulated>},
    {"n", of_shape<&Shape::n>},
    {"c", of_shape<&Shape::c>},
    {"h", of_shape<&Shape::h>},
    {"w", of_shape<&Shape::w>},
    {"k", of_shape<&Shape::k>},
    {"seed",
     [](const Report&, const CaseResult& result) {
       return result.fills.empty() ? std::string() : cell(result.seed);  // given tensors have none
     }},
    {"verdict", [](const Report&, const CaseResult& result) { return told_verdict(result); }},
    {"reason", of_case<&CaseResult::reason>},
    {"detail", of_case<&CaseResult::detail>},
    {"fill", of_check<&FillResult::fill>},
    {"worst_ratio", of_error<&ErrorSummary::worst_ratio>},
    {"max_abs", of_error<&ErrorSummary::max_abs>},
    {"max_rel", of_error<&ErrorSummary::max_rel>},
    {"max_ulp", of_error<&ErrorSummary::max_ulp>},
    {"median_ms", of_time<&TimeSummary::median>},
    {"ci95_low_ms", of_interval<0>},
    {"ci95_high_ms", of_interval<1>},
    {"min_ms", of_time<&TimeSummary::min>},
    {"p5_ms", of_time<&TimeSummary::p5>},
    {"p95_ms", of_time<&TimeSummary::p95>},
    {"mean_ms", of_time<&TimeSummary::mean>},
    {"stddev_ms", of_time<&TimeSummary::stddev>},
    {"samples",
     [](const Report&, const CaseResult& result) {
       return result.time_ms ? cell(result.time_ms->samples.size()) : std::string();
     }},
    {"converged", of_time<&TimeSummary::converged>},
    {"cache", of_time<&TimeSummary::cache>},
    {"duty_cycle", of_time<&TimeSummary::duty_cycle>},
    {"host_gaps", of_time<&TimeSummary::host_gaps>},
    {"noise", of_case<&CaseResult::noise>},
    {"remeasured", of_case<&CaseResult::remeasured>},
    {"floor_ms", of_case<&CaseResult::floor_ms>},
    {"binding_ceiling", of_case<&CaseResult::binding_ceiling>},
    {"percent_of_floor", of_case<&CaseResult::percent_of_floor>},
    {"speedup", of_case<&CaseResult::speedup>},
    {"prepare_ms", of_case<&CaseResult::prepare_ms>},
    {"workspace_bytes", of_case<&CaseResult::workspace_bytes>},
    {"plan_bytes", of_case<&CaseResult::plan_bytes>},
    {"note", of_case<&CaseResult::note>},
    {"remarks", [](const Report&,
                   const CaseResult& result) { return fmt::format("{}", fmt::join(result.remarks, "; ")); }},
    {"repeat", of_case<&CaseResult::repeat>},
};

std::string quoted(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

}  // namespace

std::string to_csv(const Report& report) {
  constexpr std::string_view kLineEnd = "\r\n";  // RFC 4180
  std::string csv;
  const auto add_row = [&](auto text_of) {
    std::string_view separator = "";
    for (const Column& column : kColumns) {
      csv.append(separator).append(quoted(valid_text(text_of(column))));
      separator = ",";
    }
    csv += kLineEnd;
  };
  add_row([](const Column& column) { return std::string(column.name); });
  for (const CaseResult& result : report.cases)
    add_row([&](const Column& column) { return column.text(report, result); });
  return csv;
}

}  // namespace convmish
