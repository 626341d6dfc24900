// Reports made by hand, for the tests of every output. The figures are plausible, not measured.
#pragma once

#include <map>
#include <string>

#include "report/report.hpp"

namespace convmish::testing {

/// A timed case that passed with two fills, of an H200.
CaseResult passed_case(const std::string& variant, MathClass math_class, double median_ms);
/// The same, found wrong with the fill `normal`: NaN where a number should be.
CaseResult failed_case(const std::string& variant, MathClass math_class);
/// One that did not run.
CaseResult skipped_case(const std::string& variant, MathClass math_class);

/// One case that passed, small enough to be read as a whole: the golden file.
Report small_report();
/// The headline shape on a GPU with every verdict.
Report gpu_report();
/// Emulated kernels on the CPU.
Report cpu_report();
/// A run that neither checked nor timed, and the default values of everything.
Report untimed_report();
/// Tensors that were given, not drawn, and found wrong.
Report given_report();

/// All of them by name.
std::map<std::string, Report> sample_reports();

}  // namespace convmish::testing
