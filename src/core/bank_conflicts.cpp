#include "core/bank_conflicts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace convmish {
namespace {

constexpr std::size_t kLanes = 32;
constexpr std::uint32_t kBanks = 32;
constexpr std::uint32_t kWordBytes = 4;
constexpr std::uint32_t kWidestAccess = 16;

/// One access of a warp: an address a lane that takes part.
struct Instruction {
  std::uint32_t bytes = 0;
  std::array<std::optional<std::uint32_t>, kLanes> offsets{};

  bool operator==(const Instruction&) const = default;

  /// Whether `other` takes the bytes behind these in every lane, so that one access of twice the width can do
  /// both.
  bool joins(const Instruction& other) const {
    if (other.bytes != bytes) return false;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (offsets[lane].has_value() != other.offsets[lane].has_value()) return false;
      if (!offsets[lane]) continue;
      if (*offsets[lane] % (2 * bytes) != 0 || *other.offsets[lane] != *offsets[lane] + bytes) return false;
    }
    return true;
  }
};
using Instructions = std::vector<Instruction>;

/// Accesses that a compiler may reorder and join: of one array, of one kind, between two barriers.
struct Place {
  std::uint32_t barriers;
  std::uint8_t array;
  AccessKind kind;

  auto operator<=>(const Place&) const = default;
};

using Threads = std::span<const std::vector<SharedAccess>>;

/// The accesses of a warp as they stand in the source: each lane's first at a place is one with the others'
/// first.
std::map<Place, Instructions> match_lanes(Threads warp) {
  std::map<Place, Instructions> places;
  for (std::size_t lane = 0; lane < warp.size(); ++lane) {
    std::map<Place, std::size_t> reached;
    for (const SharedAccess& access : warp[lane]) {
      const Place place{access.barriers, access.array, access.kind};
      Instructions& instructions = places[place];
      const std::size_t index = reached[place]++;
      if (index == instructions.size()) instructions.push_back({.bytes = access.bytes});
      instructions[index].offsets[lane] = access.offset;
    }
  }
  return places;
}

void drop_repeats(Instructions& instructions) {
  Instructions once;
  for (const Instruction& instruction : instructions)
    if (std::ranges::find(once, instruction) == once.end()) once.push_back(instruction);
  instructions = std::move(once);
}

void join_neighbours(Instructions& instructions) {
  for (std::uint32_t bytes = kWordBytes; bytes < kWidestAccess; bytes *= 2)
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].bytes != bytes) continue;
      const auto other = std::ranges::find_if(
          instructions, [&](const Instruction& candidate) { return instructions[i].joins(candidate); });
      if (other == instructions.end()) continue;
      instructions[i].bytes *= 2;
      const auto at = static_cast<std::size_t>(other - instructions.begin());
      instructions.erase(other);
      if (at < i) --i;
    }
}

/// Whether every lane wants what its partner, `distance` lanes away, wants.
bool is_paired(const Instruction& instruction, std::size_t distance) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const auto &own = instruction.offsets[lane], &other = instruction.offsets[lane ^ distance];
    if (own && other && *own != *other) return false;
  }
  return true;
}

std::size_t lanes_a_phase(const Instruction& instruction, AccessKind kind) {
  const std::size_t lanes = kLanes / std::max(1u, instruction.bytes / kWordBytes);
  const bool packed =
      kind == AccessKind::load && lanes < kLanes && (is_paired(instruction, 1) || is_paired(instruction, 2));
  return packed ? 2 * lanes : lanes;
}

/// The most different words that lanes [first, last) want of one bank; 0 where none of them takes part.
int wavefronts(const Instruction& instruction, std::size_t first, std::size_t last) {
  std::vector<std::uint32_t> words;
  for (std::size_t lane = first; lane < last; ++lane)
    if (const auto offset = instruction.offsets[lane])
      for (std::uint32_t byte = 0; byte < instruction.bytes; byte += kWordBytes)
        words.push_back((*offset + byte) / kWordBytes);
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  std::array<int, kBanks> of_bank{};
  for (const std::uint32_t word : words) ++of_bank[word % kBanks];
  return std::ranges::max(of_bank);
}

void add(SharedSite& site, const Instruction& instruction) {
  ++site.instructions;
  const std::size_t lanes = lanes_a_phase(instruction, site.kind);
  for (std::size_t first = 0; first < kLanes; first += lanes) {
    const int count = wavefronts(instruction, first, first + lanes);
    site.wavefronts += count;
    site.least_wavefronts += count > 0;
    site.worst_degree = std::max(site.worst_degree, count);
  }
}

}  // namespace

std::vector<SharedSite> shared_sites(const BlockTrace& trace) {
  std::vector<SharedSite> sites;
  const auto site = [&](const std::string& array, AccessKind kind, std::uint32_t bytes) -> SharedSite& {
    const auto found = std::ranges::find_if(sites, [&](const SharedSite& other) {
      return std::tie(other.array, other.kind, other.bytes) == std::tie(array, kind, bytes);
    });
    if (found != sites.end()) return *found;
    return sites.emplace_back(SharedSite{.array = array, .kind = kind, .bytes = bytes});
  };
  const Threads threads(trace.threads);
  for (std::size_t first = 0; first < threads.size(); first += kLanes) {
    auto places = match_lanes(threads.subspan(first, std::min(kLanes, threads.size() - first)));
    for (auto& [place, instructions] : places) {
      Place opposite = place;
      opposite.kind = place.kind == AccessKind::load ? AccessKind::store : AccessKind::load;
      if (!places.contains(opposite)) {
        if (place.kind == AccessKind::load) drop_repeats(instructions);
        join_neighbours(instructions);
      }
      for (const Instruction& instruction : instructions)
        add(site(trace.arrays[place.array], place.kind, instruction.bytes), instruction);
    }
  }
  return sites;
}

SharedSite total(const std::vector<SharedSite>& sites) {
  SharedSite sum{.array = "all"};
  for (const SharedSite& site : sites) {
    sum.instructions += site.instructions;
    sum.wavefronts += site.wavefronts;
    sum.least_wavefronts += site.least_wavefronts;
    sum.worst_degree = std::max(sum.worst_degree, site.worst_degree);
  }
  return sum;
}

}  // namespace convmish
