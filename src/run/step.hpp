// What a run is doing at a moment: for progress, for time limits, for telling where a crash happened.
#pragma once

#include <cstdint>
#include <string>

#include "core/words.hpp"

namespace convmish {

struct Step {
  enum class Kind : std::uint8_t { idle, tune, check, check_tolerance, prepare, time, check_after_timing };

  Kind kind = Kind::idle;
  Fill fill = Fill::kernelbench;  // of a check
};

inline std::string to_string(const Step& step) {
  switch (step.kind) {
    case Step::Kind::idle:
      return "starting";
    case Step::Kind::tune:
      return "tune";
    case Step::Kind::check:
      return "check " + std::string(to_string(step.fill));
    case Step::Kind::check_tolerance:
      return "check tolerance";
    case Step::Kind::prepare:
      return "prepare";
    case Step::Kind::time:
      return "time";
    case Step::Kind::check_after_timing:
      break;
  }
  return "check after timing";
}

}  // namespace convmish
