#include "core/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "core/error.hpp"
#include "core/input_text.hpp"

namespace convmish {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

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
  if (take(file, path, kMagic.size()) != kMagic) fail(path, "is no NPY file; want what numpy.save writes");
  const auto major = static_cast<unsigned char>(take(file, path, 2)[0]);
  if (major < 1 || major > 3) fail(path, fmt::format("is of NPY version {}; want 1, 2 or 3", major));
  std::size_t length = 0, shift = 0;
  for (const char byte : take(file, path, major == 1 ? 2 : 4)) {
    length |= std::size_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
  }
  constexpr std::size_t kMost = 1 << 12;  // ours has three short entries
  if (length > kMost) fail(path, fmt::format("has a header of {} bytes; want at most {}", length, kMost));
  return take(file, path, length);
}

[[noreturn]] void fail_entry(const std::filesystem::path& path, std::string_view key) {
  fail(path, fmt::format("its header has no valid \"{}\"", key));
}

/// The value of a key of the header, and all that stands behind it.
std::string_view value_of(std::string_view header, const std::filesystem::path& path, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  const std::size_t at = header.find(quoted);
  if (at == header.npos) fail_entry(path, key);
  header.remove_prefix(at + quoted.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

/// The same of a value between two characters: what they enclose.
std::string_view enclosed_value(std::string_view header, const std::filesystem::path& path,
                                std::string_view key, char open, char close) {
  const std::string_view value = value_of(header, path, key);
  const std::size_t end = value.find(close, 1);
  if (!value.starts_with(open) || end == value.npos) fail_entry(path, key);
  return value.substr(1, end - 1);
}

bool read_fortran_order(std::string_view header, const std::filesystem::path& path) {
  constexpr std::string_view kKey = "fortran_order";
  const std::string_view value = value_of(header, path, kKey);
  if (!value.starts_with("True") && !value.starts_with("False")) fail_entry(path, kKey);
  return value.starts_with("True");
}

std::vector<std::int64_t> read_extents(std::string_view header, const std::filesystem::path& path) {
  constexpr std::string_view kKey = "shape", kDigits = "0123456789";
  constexpr std::size_t kMost = 64;  // NumPy's own limit
  const std::string_view tuple = enclosed_value(header, path, kKey, '(', ')');
  std::vector<std::int64_t> extents;
  for (std::string_view rest = tuple; !rest.empty();) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    if (item.empty() && rest.empty() && !extents.empty()) break;  // "(1, )"
    if (item.empty() || item.find_first_not_of(kDigits) != item.npos) fail_entry(path, kKey);
    if (extents.size() == kMost) fail(path, fmt::format("its shape has more than {} dimensions", kMost));
    const auto extent = read_integer(item);
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
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(path, "is a directory; want what numpy.save writes");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (file.peek() == std::ifstream::traits_type::eof()) fail(path, "is empty; want what numpy.save writes");
  const std::string header = read_header(file, path);
  const std::string_view dtype = enclosed_value(header, path, "descr", '\'', '\'');
  if (dtype != "<f4") fail(path, fmt::format("its dtype is {}; want <f4: array.astype(\"<f4\")", dtype));
  if (read_fortran_order(header, path))
    fail(path, "is in Fortran order; want C order: numpy.ascontiguousarray(array)");

  NpyArray array{.extents = read_extents(header, path)};
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

void write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", to_tuple(array.extents));
  constexpr std::size_t kAlignment = 64, kPreamble = 10;  // of the data; magic, version, length
  header.resize((kPreamble + header.size()) / kAlignment * kAlignment + kAlignment - kPreamble, ' ');
  header.back() = '\n';
  const char preamble[] = {1, 0, static_cast<char>(header.size() & 0xff),
                           static_cast<char>(header.size() >> 8)};

  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << kMagic;
  file.write(preamble, sizeof preamble);
  file << header;
  file.write(reinterpret_cast<const char*>(array.values.data()),
             static_cast<std::streamsize>(array.values.size() * sizeof(float)));
  file.close();
  if (file) return;
  const int error = errno;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  throw InputError(fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

}  // namespace convmish
