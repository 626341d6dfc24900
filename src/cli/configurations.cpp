#include "cli/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/input_text.hpp"
#include "report/files.hpp"

namespace convmish {

ConfigurationOptions configuration_options(const TuningOptions& tuning) {
  ConfigurationOptions options{.asked = tuning.configuration, .tune = tuning.tune};
  if (!tuning.tune)
    options.table = tuning.table.empty() ? shipped_tuning_table() : TuningTable::load(tuning.table);
  return options;
}

void check_configurations(const ConfigurationOptions& options, const DeviceInfo& device,
                          const std::vector<const Variant*>& variants, const Registry& registry) {
  options.table.check(device, registry);
  std::vector<std::string> names;
  for (const Variant* variant : variants)
    names.insert(names.end(), variant->configurations.begin(), variant->configurations.end());
  if (options.tune && names.empty())
    throw InputError("--tune: no variant asked for has configurations to time");
  if (options.asked.empty()) return;
  if (std::ranges::find(names, options.asked) == names.end())
    throw InputError(fmt::format("--configuration: no variant asked for has \"{}\"{}", options.asked,
                                 names.empty() ? "; none has any" : advice(options.asked, names)));
}

TuningOutput::TuningOutput(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (const Destination destination = check_writable(path_); destination != Destination::file)
    throw InputError(fmt::format(
        "--tune-out: {} is {}; a tuning table must be a regular file of its own, or not be there yet",
        path_.string(),
        destination == Destination::standard_output ? "standard output" : "a pipe or a device"));
  if (std::filesystem::exists(path_)) found_ = TuningTable::load(path_);
}

void TuningOutput::keep(const DeviceInfo& device, const std::vector<const Variant*>& variants,
                        const std::vector<CaseResult>& results) {
  if (path_.empty()) return;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].verdict == Verdict::passed && results[i].configuration &&
        results[i].configuration->by == ChosenBy::tuning)
      chosen_.set(device, *variants[i], results[i].shape, results[i].configuration->name);
  try {
    write();
    unwritten_ = false;
  } catch (const InputError&) {
    unwritten_ = true;
  }
}

void TuningOutput::finish() const {
  if (unwritten_) write();
}

void TuningOutput::write() const {
  update_file(path_, [this] {
    TuningTable table;
    if (std::filesystem::exists(path_)) table = TuningTable::load(path_);
    table.adopt(chosen_);
    return table.to_json();
  });
}

}  // namespace convmish
