// `convmish-bench compare OLD NEW`: two reports, case by case.
#include <algorithm>
#include <cstdio>

#include "cli/baseline_gate.hpp"
#include "cli/commands.hpp"
#include "report/json.hpp"

namespace convmish {

ExitCode command_compare(const CommandLine& line) {
  const BaselineGate gate(line.operands[0], line.gate);
  const std::string& name = line.operands[1];
  const Report report = read_report(name);
  gate.refuse_other_device(name, report.environment.device);
  gate.refuse_disjoint(name,
                       std::ranges::any_of(report.cases, [&](auto& result) { return gate.has(result); }));
  return gate.judge({name, &report}, stdout);
}

}  // namespace convmish
