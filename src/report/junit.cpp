#include "report/junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/shape_text.hpp"
#include "report/valid_text.hpp"

namespace convmish {
namespace {

void set(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name).set_value(valid_text(value).c_str());
}

/// What a case is to JUnit; null where it passed.
const char* outcome_of(const CaseResult& result) {
  switch (result.verdict) {
    case Verdict::passed:
      return is_unchecked(result) ? "skipped" : nullptr;
    case Verdict::failed:
    case Verdict::mistrusted:
      return "failure";
    case Verdict::crashed:
    case Verdict::timed_out:
      return "error";
    case Verdict::skipped:
      break;
  }
  return "skipped";
}

void add_case(pugi::xml_node suite, const CaseResult& result) {
  pugi::xml_node test = suite.append_child("testcase");
  set(test, "classname", to_string(result.shape));
  set(test, "name", fmt::format("{}:{}", result.variant, to_string(result.math_class)));
  if (const TimeSummary* time = shown_time(result))
    set(test, "time", fmt::format("{:.9f}", time->median / 1e3));
  const char* const outcome = outcome_of(result);
  if (!outcome) return;
  pugi::xml_node told = test.append_child(outcome);
  const bool unchecked = is_unchecked(result);
  set(told, "type", unchecked ? "unchecked" : result.reason);
  set(told, "message", unchecked ? "not checked" : result.detail);
  if (!result.repeat.empty()) told.text().set(valid_text("repeat: " + result.repeat).c_str());
}

using Cases = std::vector<const CaseResult*>;

std::string count(const Cases& cases, std::string_view outcome) {
  return std::to_string(std::ranges::count_if(cases, [&](const CaseResult* result) {
    const char* const its = outcome_of(*result);
    return its && its == outcome;
  }));
}

void add_suite(pugi::xml_node root, const Environment& environment, const Cases& cases) {
  pugi::xml_node suite = root.append_child("testsuite");
  set(suite, "name", to_string(cases.front()->shape));
  set(suite, "tests", std::to_string(cases.size()));
  set(suite, "failures", count(cases, "failure"));
  set(suite, "errors", count(cases, "error"));
  set(suite, "skipped", count(cases, "skipped"));
  set(suite, "timestamp", environment.started_at);
  pugi::xml_node properties = suite.append_child("properties");
  for (const auto& [name, value] : {std::pair("device", &environment.device.name),
                                    {"driver", &environment.driver},
                                    {"cudnn", &environment.cudnn},
                                    {"git_revision", &environment.git_revision},
                                    {"command_line", &environment.command_line}}) {
    if (value->empty()) continue;
    pugi::xml_node property = properties.append_child("property");
    set(property, "name", name);
    set(property, "value", *value);
  }
  for (const CaseResult* result : cases) add_case(suite, *result);
}

}  // namespace

std::string to_junit(const Report& report) {
  std::vector<Cases> by_shape;  // in the order of the report; a shape's cases follow one another
  for (const CaseResult& result : report.cases) {
    if (by_shape.empty() || by_shape.back().front()->shape != result.shape) by_shape.emplace_back();
    by_shape.back().push_back(&result);
  }
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("testsuites");
  set(root, "name", kToolName);
  for (const Cases& cases : by_shape) add_suite(root, report.environment, cases);
  std::ostringstream text;
  document.save(text, "  ", pugi::format_indent, pugi::encoding_utf8);
  return text.str();
}

}  // namespace convmish
