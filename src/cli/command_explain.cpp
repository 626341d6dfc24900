// `convmish-bench explain VARIANT`: what a variant takes of a device for a shape, without timing it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/configurations.hpp"
#include "cli/open_device.hpp"
#include "core/registry.hpp"
#include "report/environment.hpp"
#include "report/resource_card.hpp"
#include "report/terminal.hpp"
#include "run/explain.hpp"

namespace convmish {
namespace {

using Matches = std::vector<const Variant*>;

/// One variant, in the forms that it has for several devices. Throws InputError where the pattern names more.
Matches forms_of_one(const Registry& registry, const std::string& pattern) {
  const Matches matches = find_variants(registry, pattern);
  std::vector<std::string> names;
  for (const Variant* variant : matches)
    if (const auto name = fmt::format("{}:{}", variant->name, to_string(variant->math));
        std::ranges::find(names, name) == names.end())
      names.push_back(name);
  if (names.size() > 1)
    throw InputError(fmt::format("\"{}\" names {} variants; want one of {}", pattern, names.size(),
                                 fmt::join(names, ", ")));
  return matches;
}

/// The form for a device, else any.
const Variant& form_for(DeviceKind device, const Matches& forms) {
  const auto here = std::ranges::find(forms, device, &Variant::device);
  return here == forms.end() ? *forms.front() : **here;
}

}  // namespace

ExitCode command_explain(const CommandLine& line, const DeviceFactories& devices) {
  const Matches forms = forms_of_one(Registry::instance(), line.operands.front());
  const OpenedDevice opened = device_opener(line, devices, host_environment(line.arguments))();
  Device& device = *opened.device;
  const Variant& variant = form_for(device.info().kind, forms);
  const ConfigurationOptions configurations = configuration_options(line.tuning);
  check_configurations(configurations, device.info(), {&variant}, Registry::instance());

  // Shared memory is recorded by the CPU device, whichever is explained.
  const auto emulated = std::ranges::find(forms, true, &Variant::emulated);
  std::unique_ptr<Device> recorder;
  if (device.info().kind != DeviceKind::cpu) recorder = devices.cpu();
  const ExplainedDevice here{device, opened.reason, opened.ceilings(device).best()};
  const RecordableVariant recordable{emulated == forms.end() ? nullptr : *emulated,
                                     recorder ? *recorder : device};

  const bool asked = !line.run.shapes.empty();
  const TerminalStyle style = terminal_style(STDOUT_FILENO);
  std::string_view gap;
  for (const Shape& shape : asked ? line.run.shapes : std::vector{kHeadlineShape}) {
    const ResourceCard card = explain(variant, shape, here, recordable, configurations);
    fmt::print(
        "{}{}", gap,
        resource_card_text(card, asked ? "asked for" : "default: the headline shape", opened.reason, style));
    gap = "\n";
  }
  return ExitCode::ok;
}

}  // namespace convmish
