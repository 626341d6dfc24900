#include "core/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <regex>

#include "core/error.hpp"
#include "core/input_text.hpp"

namespace convmish {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view why) {
  throw InputError(fmt::format("{}: {}", path.string(), why));
}

/// The next bytes of the file, all of them.
std::string take(std::ifstream& file, const std::filesystem::path& path, std::size_t bytes) {
  std::string text(bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) fail(path, "ends within its header");
  return text;
}

/// The header: a Python dictionary in ASCII, padded with spaces.
std::string read_header(std::ifstream& file, const std::filesystem::path& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (take(file, path, kMagic.size()) != kMagic) fail(path, "is no NPY file; want what numpy.save writes");
  const auto major = static_cast<unsigned char>(take(file, path, 2)[0]);
  if (major < 1 || major > 3) fail(path, fmt::format("is of NPY version {}; want 1, 2 or 3", major));
  std::size_t length = 0, shift = 0;
  for (const char byte : take(file, path, major == 1 ? 2 : 4)) {
    length |= std::size_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
  }
  constexpr std::size_t kMost = 1 << 16;  // ours has three short entries
  if (length > kMost) fail(path, fmt::format("has a header of {} bytes; want at most {}", length, kMost));
  return take(file, path, length);
}

/// The value of a key of the header, by a pattern of one group.
std::string entry(const std::string& header, const std::filesystem::path& path, const char* key,
                  const char* value) {
  std::smatch match;
  if (!std::regex_search(header, match, std::regex(fmt::format("'{}': *{}", key, value))))
    fail(path, fmt::format("its header has no valid \"{}\"", key));
  return match[1];
}

std::vector<std::int64_t> read_extents(const std::string& tuple, const std::filesystem::path& path) {
  std::vector<std::int64_t> extents;
  const std::regex number("[0-9]+");
  for (std::sregex_iterator at(tuple.begin(), tuple.end(), number), end; at != end; ++at) {
    const auto extent = read_integer(at->str());
    if (!extent) fail(path, fmt::format("its shape ({}) is too large", tuple));
    extents.push_back(*extent);
  }
  return extents;
}

}  // namespace

std::string to_tuple(const std::vector<std::int64_t>& extents) {
  return fmt::format("({}{})", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
}

NpyArray read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  const std::string header = read_header(file, path);
  const std::string dtype = entry(header, path, "descr", "'([^']*)'");
  if (dtype != "<f4") fail(path, fmt::format("its dtype is {}; want <f4: array.astype(\"<f4\")", dtype));
  if (entry(header, path, "fortran_order", "(True|False)") == "True")
    fail(path, "is in Fortran order; want C order: numpy.ascontiguousarray(array)");

  NpyArray array{.extents = read_extents(entry(header, path, "shape", R"(\(([0-9, ]*)\))"), path)};
  const auto begin = file.tellg();
  const auto bytes = file.seekg(0, std::ios::end).tellg() - begin;
  std::int64_t wanted = sizeof(float);  // bytes, or one more than there are: no product overflows
  for (const std::int64_t extent : array.extents)
    wanted = extent > 0 && wanted > bytes / extent ? bytes + 1 : wanted * extent;
  if (wanted != bytes)
    fail(path, fmt::format("holds {} bytes of data, which are not the float32 of its shape {}",
                           std::int64_t{bytes}, to_tuple(array.extents)));
  array.values.resize(static_cast<std::size_t>(bytes) / sizeof(float));
  file.seekg(begin);
  file.read(reinterpret_cast<char*>(array.values.data()), bytes);
  if (!file) fail(path, "cannot be read to its end");
  return array;
}

}  // namespace convmish
