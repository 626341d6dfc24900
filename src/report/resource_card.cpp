#include "report/resource_card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/shape_text.hpp"
#include "report/number_text.hpp"
#include "report/text_table.hpp"

namespace convmish {
namespace {

/// A title, then lines of "  name  value" with the values one below the other.
class Section {
 public:
  Section(std::string_view title, int width) : text_(fmt::format("\n{}\n", title)), width_(width) {}

  void add(std::string_view name, std::string_view value) {
    text_ += "  " + folded(fmt::format("{:<{}}{}", name, kNameWidth, value), width_ - 2, 2 + kNameWidth);
  }
  void add_unknown(std::string_view name, const NotKnown& unknown) {
    add(name, fmt::format("not known: {}", unknown.why));
  }
  std::string text() const { return text_; }

 private:
  static constexpr int kNameWidth = 15;

  std::string text_;
  int width_;
};

/// "16x16x1".
template <class Extents>
std::string extents(const Extents& of) {
  return fmt::format("{}x{}x{}", of[0], of[1], of[2]);
}

std::string head(const ResourceCard& card, std::string_view shape_reason, std::string_view device_reason,
                 int width) {
  const Variant& variant = *card.variant;
  std::vector<std::string> declared{
      fmt::format("for {}{}", to_string(variant.device), variant.emulated ? ", emulating a GPU" : ""),
      fmt::format("layout {}", to_string(variant.layout)), fmt::format("pipe {}", to_string(variant.pipe))};
  if (variant.products > 1) declared.push_back(fmt::format("{} products a multiply-add", variant.products));
  if (const auto* const plan = std::get_if<PlanFacts>(&card.plan))
    declared.push_back(fmt::format("algorithm {}", to_string(plan->algorithm)));
  if (variant.in_place) declared.emplace_back("activation in place");
  if (variant.min_compute_capability > 0)
    declared.push_back(fmt::format("from compute capability {}.{} on", variant.min_compute_capability / 10,
                                   variant.min_compute_capability % 10));
  return folded(fmt::format("{}:{}  {}", variant.name, to_string(variant.math), variant.summary), width, 2) +
         "  " + folded(declared, kGap, width - 2, 4) +
         folded(fmt::format("device {} ({})", card.device.name, device_reason), width, 2) +
         folded(fmt::format("shape  {} ({})", to_string(card.shape), shape_reason), width, 2);
}

void add_geometry(Section& section, const LaunchGeometry& geometry, const DeviceInfo& device) {
  section.add("grid", fmt::format("{}: {} blocks", extents(geometry.grid), geometry.blocks()));
  section.add("block", fmt::format("{}: {} threads, {} warps", extents(geometry.block), geometry.threads(),
                                   geometry.warps()));
  if (geometry.cluster > 1) section.add("cluster", fmt::format("{} blocks", geometry.cluster));
  section.add("shared memory", fmt::format("{} bytes a block", geometry.shared_bytes));
  const NotKnown unknown{"only the CUDA runtime tells, on a GPU"};
  if (geometry.registers)
    section.add("registers", fmt::format("{} a thread", *geometry.registers));
  else
    section.add_unknown("registers", unknown);
  if (geometry.local_bytes)
    section.add("local memory", fmt::format("{} bytes a thread: spills and stack", *geometry.local_bytes));
  else
    section.add_unknown("local memory", unknown);
  if (const auto filled = occupancy(geometry, device)) {
    section.add("occupancy",
                fmt::format("{} blocks a multiprocessor: {} warps, {:.0f}% of what it can hold",
                            *geometry.blocks_per_multiprocessor, filled->warps, 100 * filled->share));
    section.add("waves",
                fmt::format("{:.2f} over {} multiprocessors", filled->waves, device.multiprocessors));
  } else {
    section.add_unknown("occupancy", unknown);
    section.add_unknown("waves", unknown);
  }
}

std::string launch_section(const ResourceCard& card, int width) {
  Section section("Launch", width);
  if (const auto* const plan = std::get_if<PlanFacts>(&card.plan)) {
    if (plan->geometry)
      add_geometry(section, *plan->geometry, card.device);
    else
      section.add_unknown("geometry", {"the variant does not tell; a library launches its kernels"});
    section.add("memory", fmt::format("{} bytes of workspace, {} of the plan's", plan->workspace_bytes,
                                      plan->plan_bytes));
    if (!plan->note.empty()) section.add("plan", plan->note);
  } else {
    section.add_unknown("geometry", std::get<NotKnown>(card.plan));
  }
  if (const auto& names = card.variant->configurations; !names.empty())
    section.add("compiled in", fmt::format("{}: for --configuration", fmt::join(names, ", ")));
  return section.text();
}

std::string work_section(const ResourceCard& card, int width) {
  const Shape& shape = card.shape;
  Section section("Work", width);
  section.add("arithmetic", fmt::format("{}, as a direct convolution", scaled(shape.flops(), "FLOP")));
  section.add("traffic", fmt::format("{} at least, every tensor once", scaled(shape.least_bytes(), "B")));
  section.add("intensity", fmt::format("{:.4g} FLOP a byte", shape.flops() / shape.least_bytes()));
  return section.text();
}

template <class Row>
std::vector<const Row*> pointers(const std::vector<Row>& rows) {
  std::vector<const Row*> all;
  for (const Row& row : rows) all.push_back(&row);
  return all;
}

std::string unit_of(const Demand& demand) {
  if (demand.ceiling == "dram") return "B";
  return demand.ceiling == "special_function" ? "op" : "FLOP";
}

std::string floors_section(const ResourceCard& card, const TerminalStyle& style) {
  constexpr int kAlways = Column::kAlways;
  const auto rows = pointers(card.demands);
  const std::vector<Column> columns{
      text_column(
          "ceiling", kAlways, rows, [](auto& row) { return row.ceiling; }, Column::Align::left),
      text_column("work", kAlways, rows, [](auto& row) { return scaled(row.amount, unit_of(row)); }),
      text_column(
          "rate", kAlways, rows,
          [](auto& row) { return row.rate ? scaled(*row.rate, unit_of(row) + "/s") : std::string(); }),
      number_column(
          "floor ms", kAlways, 4, rows, [](auto& row) { return row.floor_ms(); },
          [](auto&) { return std::string(); })};
  std::string text = "\nFloors\n" + grid(columns, std::vector<RowStyle>(rows.size()), style);
  const auto binding = std::ranges::max_element(
      card.demands, {}, [](const Demand& demand) { return demand.floor_ms().value_or(0); });
  if (binding->rate)
    return text + folded(fmt::format("{} binds: a floor of {:.4g} ms; a rate that was measured can be beaten",
                                     binding->ceiling, *binding->floor_ms()),
                         style.width, 2);
  const auto* const unknown = std::get_if<NotKnown>(&card.plan);
  return text + folded(fmt::format("rates and floors not known: {}",
                                   unknown ? unknown->why : "no ceiling of this device is known"),
                       style.width, 2);
}

std::string shared_table(const std::vector<SharedSite>& sites, const TerminalStyle& style) {
  constexpr int kAlways = Column::kAlways;
  const auto rows = pointers(sites);
  std::vector<Column> columns{
      text_column(
          "access", kAlways, rows,
          [](auto& row) {
            return fmt::format("{} {}", row.kind == AccessKind::load ? "load" : "store", row.array);
          },
          Column::Align::left),
      text_column("bytes", 40, rows, [](auto& row) { return std::to_string(row.bytes); }),
      text_column("instructions", 20, rows, [](auto& row) { return std::to_string(row.instructions); }),
      text_column("wavefronts", 50, rows, [](auto& row) { return std::to_string(row.wavefronts); }),
      text_column("least", 30, rows, [](auto& row) { return std::to_string(row.least_wavefronts); }),
      text_column(
          "degree", kAlways, rows,
          [](auto& row) { return row.worst_degree > 1 ? fmt::format("{}-way", row.worst_degree) : "none"; }),
      text_column("conflicts", kAlways, rows,
                  [](auto& row) { return percent_text(100 * row.conflict_share()); })};
  fit(columns, style.width);
  return grid(columns, std::vector<RowStyle>(rows.size()), style);
}

std::string shared_section(const ResourceCard& card, const TerminalStyle& style) {
  const auto told = [&](std::string_view text) { return folded(text, style.width, 2); };
  if (const auto* const unknown = std::get_if<NotKnown>(&card.shared))
    return "\n" + told(fmt::format("Shared memory: accesses not known: {}", unknown->why));
  const SharedUse& use = std::get<SharedUse>(card.shared);
  if (use.sites.empty()) return "\nShared memory: not used\n";
  const SharedSite sum = total(use.sites);
  return "\n" +
         told(fmt::format("Shared memory, as the CPU device records it: all {} warps of block ({}, {}, {}) "
                          "of {}, one image",
                          (use.threads + 31) / 32, use.block[0], use.block[1], use.block[2],
                          extents(use.grid))) +
         shared_table(use.sites, style) +
         told(fmt::format("{} of {} wavefronts, {}, are bank conflicts",
                          sum.wavefronts - sum.least_wavefronts, sum.wavefronts,
                          percent_text(100 * sum.conflict_share()))) +
         told(
             "bytes: a lane's, with neighbouring words joined as a compiler joins them; least: without "
             "conflicts; "
             "degree: the most words that an access wants of one bank at once");
}

}  // namespace

std::string resource_card_text(const ResourceCard& card, std::string_view shape_reason,
                               std::string_view device_reason, const TerminalStyle& style) {
  return head(card, shape_reason, device_reason, style.width) + launch_section(card, style.width) +
         work_section(card, style.width) + floors_section(card, style) + shared_section(card, style);
}

}  // namespace convmish
