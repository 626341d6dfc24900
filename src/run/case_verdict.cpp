#include "run/case_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convmish {
namespace {

void set_verdict_of(CaseResult& result, const FillResult& check) {
  set_verdict(result, check.verdict, check.reason,
              fmt::format("fill {}: {}", to_string(*check.fill), check.detail));
}

}  // namespace

void set_verdict(CaseResult& result, Verdict verdict, std::string_view reason, std::string detail) {
  result.verdict = verdict;
  result.reason = reason;
  result.detail = std::move(detail);
}

void adopt(CaseResult& result, FillResult check) {
  if (check.verdict == Verdict::failed && result.verdict != Verdict::failed) set_verdict_of(result, check);
  result.checks.push_back(std::move(check));
}

void settle(CaseResult& result) {
  const auto found = [&](Verdict verdict) {
    return std::ranges::find(result.checks, verdict, &FillResult::verdict);
  };
  if (result.verdict != Verdict::passed || found(Verdict::passed) != result.checks.end()) return;
  for (const Verdict verdict : {Verdict::mistrusted, Verdict::skipped})
    if (const auto check = found(verdict); check != result.checks.end())
      return set_verdict_of(result, *check);
}

}  // namespace convmish
