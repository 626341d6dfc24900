#include "cli/tensor_files.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "check/tensor_view.hpp"
#include "core/error.hpp"
#include "core/npy.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;

struct File {
  fs::path path;
  NpyArray array;
};

[[noreturn]] void fail(const fs::path& path, std::string_view why) {
  throw InputError(fmt::format("{}: {}", path.string(), why));
}

/// `axes`: the name of each dimension, for messages.
File read(const fs::path& path, std::string_view axes) {
  File file{path, read_npy(path)};
  const auto rank = static_cast<std::size_t>(1 + std::ranges::count(axes, ' '));
  if (file.array.extents.size() != rank)
    fail(path,
         fmt::format("its shape is {}; want {} dimensions: {}", to_tuple(file.array.extents), rank, axes));
  return file;
}

void want_extents(const File& file, const std::vector<std::int64_t>& wanted, std::string_view why) {
  if (file.array.extents != wanted)
    fail(file.path,
         fmt::format("its shape is {}; want {}, {}", to_tuple(file.array.extents), to_tuple(wanted), why));
}

File read_y(const fs::path& folder, const Shape& shape, Layout layout) {
  const bool channels_last = layout == Layout::nhwc;
  File y = read(folder / "y.npy", channels_last ? "n p q k" : "n k p q");
  if (channels_last)
    want_extents(y, {shape.n, shape.p(), shape.q(), shape.k}, "n p q k of the others: p = h-2, q = w-2");
  else
    want_extents(y, {shape.n, shape.k, shape.p(), shape.q()}, "n k p q of the others: p = h-2, q = w-2");
  return y;
}

fs::path filter_in(const fs::path& folder) {
  const std::array names{folder / "filter.npy", folder / "weight.npy"};
  const bool exist[] = {fs::exists(names[0]), fs::exists(names[1])};
  if (exist[0] && exist[1]) fail(folder, "holds both filter.npy and weight.npy; want one of them");
  if (!exist[0] && !exist[1]) fail(folder, "holds neither filter.npy nor weight.npy; want one of them");
  return names[exist[0] ? 0 : 1];
}

std::vector<float> in_logical_order(std::vector<float> values, Layout layout, const Shape& shape) {
  if (layout == Layout::nchw) return values;
  const TensorDims dims{shape.n, shape.k, shape.p(), shape.q()};
  const Strides from = y_strides(layout, shape);
  std::vector<float> ordered(values.size());
  for (std::int64_t i = 0; i < dims.count(); ++i)
    ordered[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(dims.offset(from, i))];
  return ordered;
}

}  // namespace

GivenTensors read_tensors(const fs::path& folder, Layout y_layout) {
  File x = read(folder / "x.npy", "n c h w"), filter = read(filter_in(folder), "k c 3 3"),
       bias = read(folder / "bias.npy", "k");

  const auto& extents = x.array.extents;
  const Shape shape{
      .n = extents[0], .c = extents[1], .h = extents[2], .w = extents[3], .k = filter.array.extents[0]};
  if (const auto why = check_shape(shape)) fail(x.path, *why);
  want_extents(filter, {shape.k, shape.c, kFilterSize, kFilterSize}, "k c 3 3 with the c of x.npy");
  want_extents(bias, {shape.k}, fmt::format("the k of {}", filter.path.filename().string()));
  File y = read_y(folder, shape, y_layout);
  return {shape, std::move(x.array.values), std::move(filter.array.values), std::move(bias.array.values),
          in_logical_order(std::move(y.array.values), y_layout, shape)};
}

std::vector<float> read_output(const fs::path& folder, const Shape& shape, Layout y_layout) {
  return read_y(folder, shape, y_layout).array.values;
}

void write_operands(Device& device, const FillSpec& spec, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, fmt::format("cannot be made: {}", error.message()));
  const Shape& s = spec.shape;
  const auto write = [&](Tensor tensor, const char* name, std::vector<std::int64_t> extents) {
    NpyArray array{std::move(extents),
                   std::vector<float>(static_cast<std::size_t>(tensor_dims(s, tensor).count()))};
    const std::size_t bytes = array.values.size() * sizeof(float);
    const auto buffer = device.allocate(bytes);
    device.draw_tensor(spec, tensor, Layout::nchw, buffer->floats());
    device.download(array.values.data(), buffer->data(), bytes);
    write_npy(folder / name, array);
  };
  write(Tensor::x, "x.npy", {s.n, s.c, s.h, s.w});
  write(Tensor::filter, "filter.npy", {s.k, s.c, kFilterSize, kFilterSize});
  write(Tensor::bias, "bias.npy", {s.k});
}

}  // namespace convmish
