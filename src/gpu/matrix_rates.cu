#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "gpu/allocation.hpp"
#include "gpu/check.hpp"
#include "gpu/matrix_rates.hpp"
#include "gpu/median_time.hpp"

namespace convmish::gpu {
namespace {

/// cuBLAS could not be loaded, or a call into it failed.
struct CublasError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The library, opened at run time so that the tool starts where it is missing. Never closed: it keeps state
/// in the CUDA context.
class Cublas {
 public:
  explicit Cublas(cudaStream_t stream) {
    const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_)
      throw CublasError(std::string("cuBLAS cannot be loaded: ") + dlerror() +
                        "; install it, or add its folder to LD_LIBRARY_PATH");
    destroy_ = function<decltype(cublasDestroy_v2)>("cublasDestroy_v2");
    check(function<decltype(cublasCreate_v2)>("cublasCreate_v2")(&handle_), "cublasCreate");
    check(function<decltype(cublasSetStream_v2)>("cublasSetStream_v2")(handle_, stream), "cublasSetStream");
    // The one matrix product whose C++ declaration is not overloaded.
    multiply_ = function<decltype(cublasGemmEx_64)>("cublasGemmEx_64");
  }
  ~Cublas() { destroy_(handle_); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// c = a^T b, matrices of side x side elements of `type`: both operands are then contiguous along the sum.
  void multiply(std::int64_t side, cudaDataType type, cublasComputeType_t compute, const void* a,
                const void* b, void* c) {
    const float one = 1, zero = 0;
    check(multiply_(handle_, CUBLAS_OP_T, CUBLAS_OP_N, side, side, side, &one, a, type, side, b, type, side,
                    &zero, c, type, side, compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }

 private:
  template <class Function>
  Function* function(const char* name) const {
    void* const address = dlsym(library_, name);
    if (!address) throw CublasError(std::string("cuBLAS has no ") + name);
    return reinterpret_cast<Function*>(address);
  }
  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw CublasError(std::string(call) + ": " +
                      function<decltype(cublasGetStatusString)>("cublasGetStatusString")(status));
  }

  void* library_ = nullptr;
  cublasHandle_t handle_ = nullptr;
  decltype(cublasDestroy_v2)* destroy_ = nullptr;
  decltype(cublasGemmEx_64)* multiply_ = nullptr;
};

/// Numbers spread over [-1, 1): a product of equal numbers takes less power, and so runs at a higher clock.
template <class Element>
__global__ void scatter_kernel(Element* data, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 0x85EBCA6Bu;  // as MurmurHash3 mixes
    bits ^= bits >> 13;
    bits *= 0xC2B2AE35u;
    bits ^= bits >> 16;
    data[i] = static_cast<Element>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f);
  }
}

template <class Element>
double flops_per_second(Cublas& cublas, cudaStream_t stream) {
  constexpr bool kHalf = std::is_same_v<Element, __half>;
  constexpr cudaDataType kType = kHalf ? CUDA_R_16F : CUDA_R_32F;
  constexpr cublasComputeType_t kCompute = kHalf ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;

  std::size_t available = 0, total = 0;
  CONVMISH_CHECK_CUDA(cudaMemGetInfo(&available, &total));
  // Large enough for every multiprocessor to have many tiles; start and end then weigh little.
  std::int64_t side = 8192;
  const auto bytes = [&] { return static_cast<std::size_t>(side * side) * sizeof(Element); };
  while (side > 1024 && 3 * bytes() > available / 2) side /= 2;

  const Allocation a(bytes()), b(bytes()), c(bytes());
  for (const Allocation* operand : {&a, &b}) {
    scatter_kernel<<<1024, 256, 0, stream>>>(static_cast<Element*>(operand->data()), side * side);
    check_cuda(cudaGetLastError(), "scatter_kernel");
  }
  const double ms =
      median_ms(stream, [&] { cublas.multiply(side, kType, kCompute, a.data(), b.data(), c.data()); });
  const auto length = static_cast<double>(side);
  return 1e3 * 2 * length * length * length / ms;
}

}  // namespace

void measure_matrix_rates(const DeviceInfo& device, cudaStream_t stream, MeasuredCeilings& measured) {
  constexpr int kAmpere = 80;  // the first with TF32 in its tensor cores
  if (device.compute_capability() < kVolta) return;
  try {
    Cublas cublas(stream);
    measured.rates.tensor_fp16_flops = flops_per_second<__half>(cublas, stream);
    if (device.compute_capability() >= kAmpere)
      measured.rates.tensor_tf32_flops = flops_per_second<float>(cublas, stream);
  } catch (const CublasError& error) {
    measured.gap = std::string("tensor rates not measured: ") + error.what();
  }
}

}  // namespace convmish::gpu
