#include "run/tolerances.hpp"

#include <cmath>

#include "run/verify.hpp"

namespace convmish {
namespace {

constexpr int kInputs = 5;
constexpr double kKernelBench = 1e-4;

void add(ToleranceResult& total, const ErrorSummary& error) {
  total.compared += error.compared;
  total.violations += error.wrong;
  total.max_abs = std::fmax(total.max_abs, error.max_abs);
  if (error.wrong > 0) total.verdict = Verdict::failed;
}

ErrorSummary compare_by(Device& device, const PreparedVariant& prepared, Inputs& inputs, SharedOutput& output,
                        const AcceptanceRule& rule, Multiplicands multiplicands) {
  Comparison comparison = comparison_of(prepared, inputs, inputs, output);
  comparison.rule = rule;
  comparison.algorithm = Algorithm::direct;  // the rule knows no S
  comparison.multiplicands = multiplicands;
  comparison.fingerprint = comparison.activation_only = false;
  return device.compare(comparison, {});
}

}  // namespace

ToleranceResult apply_allclose(Device& device, const PreparedVariant& prepared, Inputs& inputs,
                               SharedOutput& output, const Tolerance& tolerance) {
  const AcceptanceRule rule = allclose_rule(tolerance.rtol, tolerance.atol);
  ToleranceResult result{.name = to_string(tolerance), .fill = inputs.spec().fill, .against = "float64"};
  add(result, compare_by(device, prepared, inputs, output, rule, Multiplicands::exact));
  return result;
}

std::vector<ToleranceResult> apply_kernelbench(Device& device, PreparedVariant& prepared, Inputs& inputs,
                                               SharedOutput& output) {
  const Tolerance tolerance{.kind = Tolerance::Kind::kernelbench};
  const AcceptanceRule rule = allclose_rule(kKernelBench, kKernelBench);
  const Fill fill = inputs.spec().fill;
  ToleranceResult float64{.name = to_string(tolerance), .fill = fill, .against = "float64"};
  ToleranceResult tf32{.name = to_string(tolerance), .fill = fill, .against = "tf32"};
  for (int i = 0; i < kInputs; ++i) {
    if (i > 0) inputs.redraw_x(Fill::kernelbench, inputs.spec().seed + 1);
    output.poison(kPoison);
    prepared.launch(inputs.x(prepared.variant().layout));
    device.synchronize();
    add(float64, compare_by(device, prepared, inputs, output, rule, Multiplicands::exact));
    add(tf32, compare_by(device, prepared, inputs, output, rule, Multiplicands::tf32));
  }
  return {float64, tf32};
}

}  // namespace convmish
