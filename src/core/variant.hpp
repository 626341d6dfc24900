// The contract between the tool and a kernel: what a variant declares, what it is given, what it returns.
//
// A variant file ends in one registration:
//
//   const RegisterVariant registered{{
//       .name = "naive", .summary = "...", .device = DeviceKind::cuda, .math = MathClass::fp32, ...
//       .prepare = prepare,
//   }};
//
// The tool calls `supports`, then `prepare` once per shape and filter, then the plan's `launch` any number
// of times. Filter and bias are fixed from prepare on; x and y may change, in place or by address, from
// one launch to the next. Included by device code: no fmt, JSON or option parser here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/words.hpp"

struct CUstream_st;

namespace convmish {

using Stream = CUstream_st*;  // cudaStream_t; always null on the CPU device

/// What a variant may ask of the device it would run on.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;     // CUDA ordinal
  std::string name;  // as the driver or the operating system tells it
  std::string uuid;  // empty on the CPU
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;                 // SMs, or hardware threads on the CPU
  int max_threads_per_multiprocessor = 0;  // 0 on the CPU
  std::int64_t memory_bytes = 0;           // total
  std::int64_t l2_bytes = 0;               // last-level cache
  std::int64_t max_shared_bytes = 0;       // per block, opt-in

  int compute_capability() const { return 10 * compute_major + compute_minor; }
};

/// Device memory that lives as long as the plan it was asked for. The tool owns it, surrounds it with
/// guard zones and reports its size. Aligned to 1024 bytes.
class PlanMemory {
 public:
  virtual ~PlanMemory() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // throws OutOfMemory
};

/// What `prepare` is given. Pointers are device memory in the variant's layout, 1024-byte aligned.
struct Problem {
  Shape shape;
  const float* filter = nullptr;  // fixed until the plan is destroyed
  const float* bias = nullptr;    // fixed until the plan is destroyed
  const float* x = nullptr;       // for a plan search only: valid during prepare, not to be written
  float* y = nullptr;             // for a plan search only: valid during prepare, contents are free
  const DeviceInfo* device = nullptr;
  PlanMemory* memory = nullptr;
  Stream stream = nullptr;      // prepare's device work goes here, and may be waited for
  bool timed = true;            // false: the plan is checked only, a search need not find the fastest
  std::string configuration{};  // one of the variant's; empty: as its rule has it
};

/// What `launch` is given. All device work goes on `stream`, and launch does not wait for it.
struct LaunchArgs {
  const float* x = nullptr;
  float* y = nullptr;
  void* workspace = nullptr;  // Plan::workspace_bytes of it, contents undefined, shared with other variants
  Stream stream = nullptr;
};

/// The launch configuration of a variant's main kernel, where it can tell.
struct LaunchGeometry {
  std::int64_t grid[3] = {1, 1, 1};
  int block[3] = {1, 1, 1};
  int cluster = 1;                 // thread blocks a cluster
  std::int64_t shared_bytes = 0;   // per block, static and dynamic
  std::optional<int> registers;    // per thread
  std::optional<int> local_bytes;  // per thread: spills and stack
  std::optional<int> blocks_per_multiprocessor;

  std::int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  int threads() const { return block[0] * block[1] * block[2]; }  // a block
  int warps() const { return (threads() + 31) / 32; }             // a block
};

// The {} below let designated initialisers leave members out without a warning.
struct Plan {
  std::function<void(const LaunchArgs&)> launch{};
  std::size_t workspace_bytes = 0;
  std::optional<LaunchGeometry> geometry{};
  std::string note{};                       // what was chosen: a library's algorithm, a tile
  Algorithm algorithm = Algorithm::direct;  // of this plan: a library may choose per shape
  /// Memory of the plan to which every launch adds how many outputs it computed anew, each once, because its
  /// fast way could not serve them. Null where nothing is ever recomputed.
  std::uint64_t* recomputed_outputs = nullptr;
};

struct Variant {
  std::string name;     // what a user types and a report says: the file's stem
  std::string summary;  // one line
  DeviceKind device = DeviceKind::cuda;
  MathClass math = MathClass::fp32;
  Layout layout = Layout::nchw;
  Pipe pipe = Pipe::ffma;
  int products = 1;       // pipe products a multiply-add takes (3 for a split in halves)
  bool in_place = false;  // the activation overwrites the convolution's output
  bool emulated = false;  // a GPU kernel run by the SIMT executor: its time says nothing of a GPU
  int min_compute_capability = 0;
  Group group = Group::standard;
  /// Why this shape cannot be computed on this device; nothing if it can. Null means every valid shape.
  std::function<std::optional<std::string>(const Shape&, const DeviceInfo&)> supports{};
  /// Throws Unsupported, OutOfMemory or DeviceError.
  std::function<Plan(const Problem&)> prepare{};
  /// What it has compiled in to choose from, tiles say, by name; prepare() throws Unsupported for one that
  /// cannot compute the problem. Empty: there is nothing to choose.
  std::vector<std::string> configurations{};
  /// The one that prepare() takes where it is told none. Set where there are any. Throws Unsupported where
  /// none can compute the shape.
  std::function<std::string(const Shape&, const DeviceInfo&)> preferred_configuration{};

  std::string file{};  // filled in by RegisterVariant, for the message about a name used twice
};

/// Adds a variant to the registry during static initialisation.
struct RegisterVariant {
  RegisterVariant(Variant variant, std::source_location where = std::source_location::current());
};

}  // namespace convmish
