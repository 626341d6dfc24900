// Tuning tables as the command line names them.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/options.hpp"
#include "core/registry.hpp"
#include "core/result.hpp"
#include "core/tuning_table.hpp"
#include "run/configuration.hpp"

namespace convmish {

/// With the table that is named, else the tool's own; none where it is not to be asked. Throws InputError.
ConfigurationOptions configuration_options(const TuningOptions& tuning);

/// Throws InputError where the table says of the device what cannot be, a configuration is asked for that
/// none of the variants has, or there is nothing to tune.
void check_configurations(const ConfigurationOptions& options, const DeviceInfo& device,
                          const std::vector<const Variant*>& variants, const Registry& registry);

/// A tuning table that a run adds to; others may do so at the same time.
class TuningOutput {
 public:
  /// Reads what is there already; an empty path: nothing will be kept. Throws InputError where it cannot be
  /// read or replaced, as what is no regular file cannot.
  explicit TuningOutput(std::filesystem::path path);

  /// Of what is there already, as TuningTable::check(): what --tune-table would refuse is not added to.
  void check(const DeviceInfo& device, const Registry& registry) const { found_.check(device, registry); }
  /// Keeps the choices of a shape's cases that were tuned and are right; result i is of variant i. Where that
  /// cannot be written, the next call tries again, and so does finish().
  void keep(const DeviceInfo& device, const std::vector<const Variant*>& variants,
            const std::vector<CaseResult>& results);
  /// Throws InputError where what was kept cannot be written.
  void finish() const;

 private:
  void write() const;

  std::filesystem::path path_;
  TuningTable found_;   // there before the run
  TuningTable chosen_;  // by this run
  bool unwritten_ = false;
};

}  // namespace convmish
