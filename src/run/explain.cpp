#include "run/explain.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/registry.hpp"
#include "run/inputs.hpp"
#include "run/prepared.hpp"

namespace convmish {
namespace {

using Purpose = PreparedVariant::Purpose;
constexpr Fill kFill = Fill::normal;  // no figure depends on it
constexpr std::uint64_t kSeed = 0;

Known<PlanFacts> describe_plan(const Variant& variant, const Shape& shape, Device& device,
                               const std::optional<ConfigurationChoice>& choice) {
  Inputs inputs(device, kFill, kSeed, shape);
  SharedOutput output(device, shape);
  const PreparedVariant prepared(device, variant, inputs, output, Purpose::description, name_of(choice));
  const Plan& plan = prepared.plan();
  return PlanFacts{.geometry = plan.geometry,
                   .algorithm = plan.algorithm,
                   .workspace_bytes = static_cast<std::int64_t>(plan.workspace_bytes),
                   .plan_bytes = prepared.plan_bytes(),
                   .note = note_with_choice(plan.note, choice)};
}

/// On one image: a kernel's blocks do the same for each.
Known<SharedUse> record_shared_use(const Variant& variant, Shape shape, Device& device,
                                   const std::string& configuration) {
  shape.n = 1;
  Inputs inputs(device, kFill, kSeed, shape);
  SharedOutput output(device, shape);
  PreparedVariant prepared(device, variant, inputs, output, Purpose::check_only, configuration);
  const float* const x = inputs.x(variant.layout);
  const auto trace = device.trace_block([&] { prepared.launch(x); });
  if (!trace) return NotKnown{"its kernel has no form whose accesses are recorded"};
  return SharedUse{.grid = trace->grid,
                   .block = trace->block,
                   .threads = trace->threads.size(),
                   .sites = shared_sites(*trace)};
}

/// What `find` finds, or why the variant cannot be prepared.
template <class Find>
auto refused_or(const Find& find) -> decltype(find()) {
  try {
    return find();
  } catch (const Unsupported& error) {
    return NotKnown{error.what()};
  } catch (const OutOfMemory& error) {
    return NotKnown{error.what()};
  }
}

}  // namespace

ResourceCard explain(const Variant& variant, const Shape& shape, const ExplainedDevice& here,
                     const RecordableVariant& recordable, const ConfigurationOptions& configurations) {
  ResourceCard card{.variant = &variant, .shape = shape, .device = here.device.info()};
  std::optional<ConfigurationChoice> choice;
  if (const auto why = why_unavailable(variant, card.device)) {
    card.plan = NotKnown{fmt::format("{} ({})", *why, here.reason)};
  } else {
    card.plan = refused_or([&] {
      choice = choose_configuration(variant, shape, card.device, configurations);
      return describe_plan(variant, shape, here.device, choice);
    });
  }
  if (recordable.variant != nullptr)
    card.shared = refused_or(
        [&] { return record_shared_use(*recordable.variant, shape, recordable.device, name_of(choice)); });

  const auto* const plan = std::get_if<PlanFacts>(&card.plan);
  card.demands = demands(shape, variant.pipe, variant.products, plan ? plan->algorithm : Algorithm::direct,
                         plan ? here.ceilings : Ceilings{});
  return card;
}

}  // namespace convmish
