// A resource card as text for people.
#pragma once

#include <string>
#include <string_view>

#include "core/resource_card.hpp"
#include "report/terminal.hpp"

namespace convmish {

/// What the variant is, its launch, its work and floors, and its accesses to shared memory. What is not known
/// is told so, with the reason. `shape_reason`, `device_reason`: why these, as in a report's plan.
std::string resource_card_text(const ResourceCard& card, std::string_view shape_reason,
                               std::string_view device_reason, const TerminalStyle& style);

}  // namespace convmish
