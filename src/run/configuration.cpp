#include "run/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "run/timing.hpp"

namespace convmish {
namespace {

std::string how_chosen(const ConfigurationChoice& choice) {
  switch (choice.by) {
    case ChosenBy::rule:
      return "by the variant's rule";
    case ChosenBy::table:
      return "from the tuning table";
    case ChosenBy::tuning:
      return fmt::format("fastest of {} timed", choice.timed.size());
    case ChosenBy::request:
      break;
  }
  return "asked for";
}

}  // namespace

std::optional<ConfigurationChoice> choose_configuration(const Variant& variant, const Shape& shape,
                                                        const DeviceInfo& device,
                                                        const ConfigurationOptions& options) {
  if (variant.configurations.empty()) return std::nullopt;
  if (std::ranges::find(variant.configurations, options.asked) != variant.configurations.end())
    return ConfigurationChoice{.name = options.asked, .by = ChosenBy::request, .timed = {}};
  if (auto known = options.table.find(device, variant, shape))
    return ConfigurationChoice{.name = std::move(*known), .by = ChosenBy::table, .timed = {}};
  return ConfigurationChoice{
      .name = variant.preferred_configuration(shape, device), .by = ChosenBy::rule, .timed = {}};
}

ConfigurationChoice tune(Device& device, const Variant& variant, Inputs& inputs, SharedOutput& output,
                         const TimingOptions& timing, const std::function<void()>& before_launch) {
  std::vector<std::unique_ptr<PreparedVariant>> prepared;
  std::vector<std::string> names;
  std::exception_ptr refusal;
  for (const std::string& name : variant.configurations) {
    try {
      prepared.push_back(std::make_unique<PreparedVariant>(device, variant, inputs, output,
                                                           PreparedVariant::Purpose::timing, name));
      names.push_back(name);
    } catch (const Unsupported&) {
      refusal = std::current_exception();
    } catch (const OutOfMemory&) {
      refusal = std::current_exception();
    }
  }
  std::vector<PreparedVariant*> running;
  for (const auto& one : prepared) running.push_back(one.get());
  Inputs* const input_sets[] = {&inputs};
  const TimingObserver observer{.before_launch = [&](std::size_t) { before_launch(); },
                                .after_launch = [](auto&&...) {},
                                .after_error = [] {}};
  const auto timings = time_variants(device, running, input_sets, timing, inputs.spec().seed, observer);

  ConfigurationChoice choice{.name = {}, .by = ChosenBy::tuning, .timed = {}};
  for (std::size_t i = 0; i < timings.size(); ++i) {
    // One that can compute the shape and fails is a fault of the variant's, not to be passed over.
    if (timings[i].error) std::rethrow_exception(timings[i].error);
    if (timings[i].time) choice.timed.push_back({names[i], timings[i].time->median});
  }
  if (choice.timed.empty()) std::rethrow_exception(refusal);
  choice.name = std::ranges::min_element(choice.timed, {}, &ConfigurationChoice::Timed::median_ms)->name;
  return choice;
}

std::string name_of(const std::optional<ConfigurationChoice>& choice) {
  return choice ? choice->name : std::string();
}

std::string note_with_choice(const std::string& note, const std::optional<ConfigurationChoice>& choice) {
  if (!choice) return note;
  return fmt::format("{}{}{}", note, note.empty() ? "" : "; ", how_chosen(*choice));
}

}  // namespace convmish
