#include "report/number_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace convmish {

std::string scaled(double value, std::string_view unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t i = 0;
  while (value >= 999.95 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{:.4g} {}{}", value, kPrefixes[i], unit);
}

std::string scientific(double value) {
  std::string text = fmt::format("{:.1e}", value);
  const auto exponent = text.find('e');
  if (exponent != std::string::npos && text.size() == exponent + 4 && text[exponent + 2] == '0')
    text.erase(exponent + 2, 1);  // "1.9e-06"
  return text;
}

std::string ratio_text(double ratio) {
  if (!std::isfinite(ratio)) return fmt::format("{}", ratio);
  if (ratio > 0 && ratio < 0.005) return "<0.01";
  if (ratio > 1 && ratio < 1.005) return ">1.00";  // on which side of 1 it is decides
  return ratio < 99.995 ? fmt::format("{:.2f}", ratio) : scientific(ratio);
}

std::string percent_text(double percent) {
  return fmt::format("{:.{}f}%", percent, percent < 9.995 ? 2 : 1);
}

}  // namespace convmish
