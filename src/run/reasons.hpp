// The machine-readable reasons of verdicts other than `passed`, but `interrupted`: core/result.hpp has it.
#pragma once

#include <string_view>

namespace convmish::reason {

// failed
inline constexpr std::string_view outside_tolerance = "outside_tolerance";
inline constexpr std::string_view wrong_class = "wrong_class";  // R shows less precision than declared
inline constexpr std::string_view wrote_outside = "wrote_outside_buffers";  // or changed an input
inline constexpr std::string_view unordered_work = "work_outside_stream";
inline constexpr std::string_view wrong_when_timed = "wrong_when_timed";
inline constexpr std::string_view impossible_time = "impossible_time";  // below what the data sheet allows
// mistrusted
inline constexpr std::string_view weak_data = "weak_data";  // most outputs could be 0 and pass
// skipped
inline constexpr std::string_view unavailable = "unavailable_here";
inline constexpr std::string_view unsupported = "unsupported";
inline constexpr std::string_view out_of_memory = "out_of_memory";
inline constexpr std::string_view not_applicable = "not_applicable";  // of one fill
// crashed
inline constexpr std::string_view device_error = "device_error";
inline constexpr std::string_view exception = "exception";
inline constexpr std::string_view process_died = "process_died";
// timed_out
inline constexpr std::string_view time_limit = "time_limit";

}  // namespace convmish::reason
