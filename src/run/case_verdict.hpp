// What the checks of a case make of it.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace convmish {

void set_verdict(CaseResult& result, Verdict verdict, std::string_view reason, std::string detail);

/// Adds the check of a drawn fill; the first that failed fails the case.
void adopt(CaseResult& result, FillResult check);

/// Once all checks are there: a case of which none has passed has not passed either. Data that proves
/// nothing, a single output say, does not take from what other fills have proved.
void settle(CaseResult& result);

}  // namespace convmish
