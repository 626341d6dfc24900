// Output files that are either whole or not there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace convmish {

/// What a path leads to.
enum class Destination {
  file,             // is replaced, or is made
  stream,           // a pipe or a device
  standard_output,  // what this process prints to, by whatever name
};

/// Throws InputError, with path and reason, if write_file() could not write `path`. Creates and changes
/// nothing: for a clear refusal before a long run, not after it.
Destination check_writable(const std::filesystem::path& path);

/// Replaces the contents of `path` in one step: a reader, or a crash, sees the old file or the new one. On
/// failure the old file is as it was, nothing else is left behind, and InputError says why. The new file has
/// the old one's mode. A symbolic link is followed; what is no file cannot be replaced, and gets the contents
/// each time.
void write_file(const std::filesystem::path& path, std::string_view contents);

/// Replaces a file, as write_file() does, by what `contents` makes of it. Of several processes that do so to
/// one file each finds what the one before it wrote.
void update_file(const std::filesystem::path& path, const std::function<std::string()>& contents);

}  // namespace convmish
