#include "variants/common/cudnn_library.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/library_versions.hpp"

void* cudnn_frontend::cudnn_dlhandle =
    nullptr;  // declared by the frontend, owned by whoever opens the library

namespace convmish {
namespace {

constexpr char kLibrary[] = "libcudnn.so.9";

const RegisterLibraryVersion registered_version{"cudnn", cudnn_version};

}  // namespace

const std::string& cudnn_loading_error() {
  static const std::string error = []() -> std::string {
    fe::cudnn_dlhandle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (fe::cudnn_dlhandle) return {};
    return fmt::format("cuDNN cannot be loaded: {}; install cuDNN 9, or add its folder to LD_LIBRARY_PATH",
                       dlerror());
  }();
  return error;
}

std::string cudnn_version() {
  if (!cudnn_loading_error().empty()) return {};
  const std::size_t version = fe::detail::get_backend_version();  // 91900 is 9.19.0
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

cudnnHandle_t cudnn_handle_on(Stream stream) {
  // Never destroyed: at exit the CUDA context may be gone before it.
  static const cudnnHandle_t handle = [] {
    cudnnHandle_t created = nullptr;
    check_cudnn(fe::detail::create_handle(&created), "cudnnCreate");
    return created;
  }();
  check_cudnn(fe::detail::set_stream(handle, stream), "cudnnSetStream");
  return handle;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(one_line(fmt::format("{}: {} ({})", call, fe::detail::get_error_string(status),
                                         fe::detail::get_last_error_string_())));
}

}  // namespace convmish
