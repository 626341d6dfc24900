// oneDNN's direct convolution with bias, then both Mishes in one pass of our own.
//
// oneDNN can fuse two Mish post-ops into its convolution, but not so that the result is both right and fast.
// Version 2.6.3, n4c64h64w64k128, two AVX2 cores:
//
//   post-ops, blocked layout (jit)     16.5 ms  wrong: its Mish takes log(1 + e^x), which loses the relative
//                                               accuracy of the tail from x = -3 on and gives 0 below -16.6
//   post-ops, plain layout (gemm)       145 ms  right
//   blocked layout, no post-ops        14.4 ms  right: this file, and a pass of our own for both Mishes. It
//                                               costs 25 to 40 ns an output and core, most of that in libm
//
// x and y are NCHW for the caller, so each launch (and each time above) includes the reorders to and from the
// blocked layout; the filter's is done once, in prepare. Where oneDNN takes the plain layout itself there are
// no reorders.
//
// oneDNN and our pass share OpenMP's threads. A forked child cannot use them once the parent has, so nothing
// here calls oneDNN before prepare: a caller that isolates cases forks first.

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/library_versions.hpp"
#include "core/variant.hpp"
#include "variants/common/mish.hpp"

namespace convmish {
namespace {

using dnnl::memory;

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector that oneDNN loads

std::string library_version_text() {
  const dnnl_version_t& version = *dnnl_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

/// Calls into oneDNN, and tells its exceptions as the tool's.
template <class Call>
auto checked(const char* step, Call call) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    const std::string text = "oneDNN " + library_version_text() + ": " + step + ": " +
                             dnnl_status2str(error.status) + " (" + error.what() + ")";
    if (error.status == dnnl_unimplemented) throw Unsupported(text);
    throw DeviceError(text);
  }
}

memory::desc describe(const memory::dims& dims, memory::format_tag tag) {
  return {dims, memory::data_type::f32, tag};
}

/// Scratch memory comes out of the plan's workspace, where the report counts it.
dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// `any`: oneDNN chooses the layouts that suit its fastest kernel.
dnnl::convolution_forward::primitive_desc describe_convolution(const Shape& s, const dnnl::engine& engine) {
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;  // Winograd would err by norm
  constexpr auto kAny = memory::format_tag::any;
  const auto x = describe({s.n, s.c, s.h, s.w}, kAny);
  const auto filter = describe({s.k, s.c, kFilterSize, kFilterSize}, kAny);
  const auto bias = describe({s.k}, memory::format_tag::x);
  const auto y = describe({s.n, s.k, s.p(), s.q()}, kAny);
  const memory::dims stride{1, 1}, padding{0, 0};
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kInference, kDirect, x, filter, bias, y, stride, padding, padding, attributes()};
#else
  return {{kInference, kDirect, x, filter, bias, y, stride, padding, padding}, attributes(), engine};
#endif
}

/// A change of layout; nothing where both layouts are the same.
class Reorder {
 public:
  Reorder(const dnnl::engine& engine, const memory::desc& from, const memory::desc& to) {
    if (from == to) return;
    description_.emplace(engine, from, engine, to, attributes());
    primitive_.emplace(*description_);
  }
  bool needed() const { return primitive_.has_value(); }
  std::size_t scratchpad_bytes() const {
    return description_ ? description_->scratchpad_desc().get_size() : 0;
  }
  void operator()(const dnnl::stream& stream, const memory& from, const memory& to, void* scratchpad) const {
    memory scratch(description_->scratchpad_desc(), stream.get_engine(), scratchpad);
    primitive_->execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch}});
  }

 private:
  std::optional<dnnl::reorder::primitive_desc> description_;
  std::optional<dnnl::reorder> primitive_;
};

/// The three steps of a convolution between NCHW tensors, and where each finds its memory.
class OnednnConvolution {
 public:
  OnednnConvolution(const Problem& problem)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        convolution_description_(describe_convolution(problem.shape, engine_)),
        convolution_(convolution_description_),
        x_plain_(plain(problem.shape.n, problem.shape.c, problem.shape.h, problem.shape.w)),
        y_plain_(plain(problem.shape.n, problem.shape.k, problem.shape.p(), problem.shape.q())),
        pack_x_(engine_, x_plain_, convolution_description_.src_desc()),
        unpack_y_(engine_, convolution_description_.dst_desc(), y_plain_),
        bias_(convolution_description_.bias_desc(), engine_, const_cast<float*>(problem.bias)),
        filter_(pack_filter(problem)) {
    // The workspace: one scratchpad, used by one step at a time, then the blocked tensors.
    x_offset_ = aligned(std::max({convolution_description_.scratchpad_desc().get_size(),
                                  pack_x_.scratchpad_bytes(), unpack_y_.scratchpad_bytes()}));
    const auto x_bytes = pack_x_.needed() ? convolution_description_.src_desc().get_size() : 0;
    const auto y_bytes = unpack_y_.needed() ? convolution_description_.dst_desc().get_size() : 0;
    y_offset_ = x_offset_ + aligned(x_bytes);
    workspace_bytes_ = y_offset_ + y_bytes;
  }

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  std::string implementation() const { return convolution_description_.impl_info_str(); }

  void run(const float* x, float* y, void* workspace) const {
    const auto at = [workspace](std::size_t offset) { return static_cast<char*>(workspace) + offset; };
    const memory x_given(x_plain_, engine_, const_cast<float*>(x)), y_given(y_plain_, engine_, y);
    memory x_used = x_given, y_used = y_given;
    if (pack_x_.needed()) {
      x_used = memory(convolution_description_.src_desc(), engine_, at(x_offset_));
      pack_x_(stream_, x_given, x_used, workspace);
    }
    if (unpack_y_.needed()) y_used = memory(convolution_description_.dst_desc(), engine_, at(y_offset_));
    convolution_.execute(stream_, {{DNNL_ARG_SRC, x_used},
                                   {DNNL_ARG_WEIGHTS, filter_},
                                   {DNNL_ARG_BIAS, bias_},
                                   {DNNL_ARG_DST, y_used},
                                   {DNNL_ARG_SCRATCHPAD,
                                    memory(convolution_description_.scratchpad_desc(), engine_, workspace)}});
    if (unpack_y_.needed()) unpack_y_(stream_, y_used, y_given, workspace);
    stream_.wait();
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  static memory::desc plain(std::int64_t outer, std::int64_t channels, std::int64_t rows,
                            std::int64_t columns) {
    return describe({outer, channels, rows, columns}, memory::format_tag::nchw);
  }

  memory pack_filter(const Problem& problem) {
    const Shape& s = problem.shape;
    const memory::desc packed = convolution_description_.weights_desc();
    memory given(describe({s.k, s.c, kFilterSize, kFilterSize}, memory::format_tag::oihw), engine_,
                 const_cast<float*>(problem.filter));
    if (packed == given.get_desc()) return given;
    memory filter(packed, engine_, problem.memory->allocate(packed.get_size()));
    dnnl::reorder(given, filter).execute(stream_, given, filter);
    stream_.wait();
    return filter;
  }

  dnnl::engine engine_;
  mutable dnnl::stream stream_;
  dnnl::convolution_forward::primitive_desc convolution_description_;
  dnnl::convolution_forward convolution_;
  memory::desc x_plain_, y_plain_;
  Reorder pack_x_, unpack_y_;
  memory bias_, filter_;
  std::size_t x_offset_ = 0, y_offset_ = 0, workspace_bytes_ = 0;
};

void activate(float* y, std::int64_t count) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) y[i] = mish_of_mish(y[i]);
}

Plan prepare(const Problem& problem) {
  const auto convolution =
      checked("convolution set-up", [&] { return std::make_shared<const OnednnConvolution>(problem); });
  return {
      .launch =
          [convolution, outputs = problem.shape.y_elements()](const LaunchArgs& args) {
            checked("convolution", [&] { convolution->run(args.x, args.y, args.workspace); });
            activate(args.y, outputs);
          },
      .workspace_bytes = convolution->workspace_bytes(),
      .note = convolution->implementation(),
  };
}

const RegisterVariant registered{{
    .name = "onednn_fused",
    .summary = "oneDNN direct convolution with bias, then both Mishes in one pass in place",
    .device = DeviceKind::cpu,
    .math = MathClass::fp32,
    .pipe = Pipe::unknown,  // oneDNN picks its kernel
    .in_place = true,
    .prepare = prepare,
}};

const RegisterLibraryVersion registered_version{"onednn", library_version_text};

}  // namespace
}  // namespace convmish
