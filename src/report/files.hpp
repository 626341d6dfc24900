// Output files that are either whole or not there.
#pragma once

#include <filesystem>
#include <string_view>

namespace convmish {

/// Throws InputError, with path and reason, if write_file() could not write `path`. Creates and changes
/// nothing: for a clear refusal before a long run, not after it.
void check_writable(const std::filesystem::path& path);

/// Replaces the contents of `path` in one step: a reader, or a crash, sees the old file or the new one. On
/// failure the old file is as it was, nothing else is left behind, and InputError says why. A symbolic link
/// is followed; a pipe or a device, which cannot be replaced, is written to as it is.
void write_file(const std::filesystem::path& path, std::string_view contents);

}  // namespace convmish
