// The JSON report (configs/schema/report.schema.json) and back, without loss.
//
// What was not measured is null. Doubles are written so that they read back to the same bits; JSON has no
// number for NaN and the infinities: they are the strings "nan", "inf" and "-inf".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace convmish {

/// Indented, with a final newline.
std::string to_json(const Report& report);

/// One line, without its newline: results stream between processes and to disk as one case a line.
std::string to_json_line(const CaseResult& result);

/// Keys that this version does not know are ignored, so that reports of a later minor version can be read.
/// Throws InputError "FILE: /json/pointer: what is wrong" for anything else, another major version included.
Report read_report(const std::filesystem::path& path);

/// What to_json() wrote.
Report report_from_json(std::string_view text, const std::string& source);

/// What to_json_line() wrote. `source` stands for the file in messages.
CaseResult case_from_json(std::string_view text, const std::string& source);

}  // namespace convmish
