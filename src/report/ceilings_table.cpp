#include "report/ceilings_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "report/number_text.hpp"
#include "report/text_table.hpp"

namespace convmish {
namespace {

struct NamedRate {
  const char* name;  // as a case's binding ceiling tells it
  const char* unit;
  std::optional<double> Ceilings::*rate;
};

constexpr NamedRate kNamedRates[] = {{"dram", "B/s", &Ceilings::dram_bytes},
                                     {"ffma", "FLOP/s", &Ceilings::ffma_flops},
                                     {"tensor_tf32", "FLOP/s", &Ceilings::tensor_tf32_flops},
                                     {"tensor_fp16", "FLOP/s", &Ceilings::tensor_fp16_flops},
                                     {"special_function", "op/s", &Ceilings::special_functions}};

std::string rate_text(const Ceilings& ceilings, const NamedRate& named) {
  const auto rate = ceilings.*named.rate;
  return rate ? scaled(*rate, named.unit) : std::string();
}

}  // namespace

std::string ceilings_table(const DeviceCeilings& ceilings, const TerminalStyle& style) {
  const Ceilings best = ceilings.best();
  std::vector<const NamedRate*> rows;
  for (const NamedRate& named : kNamedRates)
    if (best.*named.rate) rows.push_back(&named);
  if (rows.empty()) return {};

  constexpr int kAlways = Column::kAlways;
  const auto name = [](const NamedRate& named) { return std::string(named.name); };
  const auto measured = [&](const NamedRate& named) { return rate_text(ceilings.measured.rates, named); };
  const auto data_sheet = [&](const NamedRate& named) { return rate_text(ceilings.data_sheet, named); };
  std::string out = grid({text_column("ceiling", kAlways, rows, name, Column::Align::left),
                          text_column("measured", kAlways, rows, measured),
                          text_column("data sheet", kAlways, rows, data_sheet)},
                         std::vector<RowStyle>(rows.size()), style);
  if (!ceilings.measured_at.empty()) out += fmt::format("measured at {}\n", ceilings.measured_at);
  if (!ceilings.measured.gap.empty()) {
    const bool stands_in = std::ranges::any_of(kCeilingRates, [&](auto rate) {
      return ceilings.data_sheet.*rate && !(ceilings.measured.rates.*rate);
    });
    out += folded(ceilings.measured.gap + (stands_in ? "; the data sheet's figure stands in" : ""),
                  style.width, 2);
  }
  return out;
}

}  // namespace convmish
