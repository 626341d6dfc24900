// Figures as people read them.
#pragma once

#include <string>
#include <string_view>

namespace convmish {

/// 608.8e9 of "FLOP" -> "608.8 GFLOP".
std::string scaled(double value, std::string_view unit);

/// Two digits: "1.9e-6".
std::string scientific(double value);

/// A ratio to what is allowed: two decimals around 1, fewer digits far from it.
std::string ratio_text(double ratio);

/// "0.82%", "12.3%".
std::string percent_text(double percent);

}  // namespace convmish
