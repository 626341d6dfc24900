#include "cli/case_exit_code.hpp"

namespace convmish {

ExitCode exit_code_of(const std::vector<CaseResult>& cases) {
  ExitCode code = ExitCode::ok;
  bool any_ran = false;
  for (const CaseResult& result : cases) {
    any_ran |= result.verdict != Verdict::skipped;
    switch (result.verdict) {
      case Verdict::passed:
      case Verdict::skipped:
        break;
      case Verdict::failed:
      case Verdict::mistrusted:
        code = worse(code, ExitCode::wrong);
        break;
      case Verdict::crashed:
      case Verdict::timed_out:
        code = worse(code, ExitCode::crashed);
        break;
    }
  }
  // A run that could not run anything must not look like one in which all is right.
  if (!any_ran) throw EnvironmentError("nothing could be run here: every case was skipped");
  return code;
}

}  // namespace convmish
