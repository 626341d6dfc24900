// What a block's accesses to shared memory cost: from the addresses of its threads to wavefronts.
//
// Shared memory has 32 banks, successive 4-byte words in successive banks. In a cycle, a wavefront, each bank
// gives one word, to any number of lanes. So a warp's access takes as many wavefronts as the most different
// words that it wants of one bank:
//
//   wavefronts = max over b of |{word : a lane wants word, word mod 32 = b}|
//
// (CUDA C++ Programming Guide, "Compute Capability 5.x", Shared Memory; CUDA C++ Best Practices Guide,
// "Shared Memory and Memory Banks".) A warp takes 8 or 16 bytes a lane in 2 or 4 phases, half or quarter
// warps, each by this formula. A load of which each lane wants what lane n^1 wants, or each what lane n^2
// wants, takes half as many phases: the returning registers are packed (NVIDIA developer forum, "Unexpected
// shared memory bank conflict", thread 77228; a uniform 16-byte load takes 2). The least that an access can
// take is a wavefront a phase; what it takes beyond are its conflicts, as a profiler counts them.
//
// An access is an instruction, not an expression of the source, so the compiler's part is modelled: where a
// warp only reads an array between two barriers, a word that its lanes have read is kept in registers, and
// where it only reads or only writes it, neighbouring words become one access of 8 or 16 bytes if every
// lane's address is a multiple of that. Lanes that take different ways through a kernel are matched by the
// order of their accesses to the array since the last barrier.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace convmish {

enum class AccessKind : std::uint8_t { load, store };

/// One element that one thread read or wrote.
struct SharedAccess {
  std::uint32_t offset = 0;  // bytes from the start of the block's shared memory, whose banks start there too
  std::uint32_t barriers = 0;  // that the thread had passed
  std::uint8_t array = 0;      // index into BlockTrace::arrays
  std::uint8_t bytes = 0;
  AccessKind kind = AccessKind::load;
};

/// What the threads of one block did in shared memory, each in its own order.
struct BlockTrace {
  std::array<std::int64_t, 3> grid{}, block{};  // of the launch; which of its blocks
  std::vector<std::string> arrays;
  std::vector<std::vector<SharedAccess>> threads;  // x fastest: 32 in a row are a warp
};

/// Accesses of one kind, width and array, summed over the block's warps.
struct SharedSite {
  std::string array;
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 0;  // a lane
  std::int64_t instructions = 0;
  std::int64_t wavefronts = 0;
  std::int64_t least_wavefronts = 0;
  int worst_degree = 0;  // most wavefronts of a phase: 1 is free of conflicts, 32 the worst there is

  double conflict_share() const {
    return wavefronts == 0
               ? 0.0
               : static_cast<double>(wavefronts - least_wavefronts) / static_cast<double>(wavefronts);
  }
};

/// In the order in which the block first comes to them.
std::vector<SharedSite> shared_sites(const BlockTrace& trace);

/// The sum of all: its array is "all".
SharedSite total(const std::vector<SharedSite>& sites);

}  // namespace convmish
