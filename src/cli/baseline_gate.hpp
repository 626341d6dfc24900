// An earlier report, which a new one is held against.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "report/comparison.hpp"

namespace convmish {

/// What would be refused is compared all the same where the options force it.
class BaselineGate {
 public:
  /// Reads the earlier report. Throws InputError.
  BaselineGate(const std::filesystem::path& file, const GateOptions& options);
  BaselineGate(const BaselineGate&) = delete;  // the index points into the report

  bool has(const CaseResult& result) const { return cases_.find(result) != nullptr; }

  /// Throws InputError where the device is another, by name: its times would say nothing.
  void refuse_other_device(const std::string& report_name, const DeviceInfo& device) const;
  /// Throws InputError where no case is common.
  void refuse_disjoint(const std::string& report_name, bool any_common) const;

  /// Prints the comparison. ExitCode::slower on a regression.
  ExitCode judge(const NamedReport& report, std::FILE* out) const;

 private:
  std::string name_;
  GateOptions options_;
  Report before_;
  CaseIndex cases_;
};

}  // namespace convmish
