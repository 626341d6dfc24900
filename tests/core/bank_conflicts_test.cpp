// From addresses to wavefronts: traces of a warp written by hand.
#include "core/bank_conflicts.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace convmish {
namespace {

/// One access by each of `threads` threads, at `offset(thread)`.
void access(BlockTrace& trace, std::uint8_t bytes, const std::function<std::uint32_t(std::uint32_t)>& offset,
            AccessKind kind = AccessKind::load, std::uint32_t barriers = 0) {
  for (std::uint32_t thread = 0; thread < trace.threads.size(); ++thread)
    trace.threads[thread].push_back(
        {.offset = offset(thread), .barriers = barriers, .bytes = bytes, .kind = kind});
}

BlockTrace block_of(std::size_t threads) {
  BlockTrace trace;
  trace.arrays = {"a"};
  trace.threads.resize(threads);
  return trace;
}

SharedSite of_one_access(std::uint8_t bytes, const std::function<std::uint32_t(std::uint32_t)>& offset,
                         AccessKind kind = AccessKind::load) {
  BlockTrace trace = block_of(32);
  access(trace, bytes, offset, kind);
  return total(shared_sites(trace));
}

TEST(SharedSites, CountTheMostDifferentWordsOfABank) {
  const auto groups_of_eight = [](auto t) {
    return t / 8 * 128 + t % 8 * 4;
  };  // 4 words each in banks 0 to 7
  EXPECT_EQ(of_one_access(4, groups_of_eight).wavefronts, 4);
  const auto pairs = [](auto t) { return t / 2 * 4; };  // the same word twice is no conflict
  EXPECT_EQ(of_one_access(4, pairs).wavefronts, 1);
  const auto one_away = [](auto t) { return t == 31 ? 128u : t * 4; };  // banks 0 to 30, then 0 again
  EXPECT_EQ(of_one_access(4, one_away).wavefronts, 2);
  EXPECT_DOUBLE_EQ(of_one_access(4, one_away).conflict_share(), 0.5);
}

TEST(SharedSites, TakeWideAccessesByHalfAndQuarterWarps) {
  for (const std::uint8_t bytes : {std::uint8_t{8}, std::uint8_t{16}}) {
    const SharedSite contiguous = of_one_access(bytes, [=](auto t) { return t * bytes; });
    EXPECT_EQ(contiguous.wavefronts, bytes / 4);
    EXPECT_EQ(contiguous.least_wavefronts, bytes / 4);
    const SharedSite strided = of_one_access(bytes, [=](auto t) { return t * 2 * bytes; });
    EXPECT_EQ(strided.wavefronts, 2 * bytes / 4);
    EXPECT_EQ(strided.least_wavefronts, bytes / 4);
    EXPECT_EQ(strided.worst_degree, 2);
  }
}

TEST(SharedSites, HalveThePhasesOfLoadsThatLanesShareInPairs) {
  const auto uniform = [](auto) { return 0u; };
  EXPECT_EQ(of_one_access(8, uniform).wavefronts, 1);
  EXPECT_EQ(of_one_access(16, uniform).wavefronts, 2);
  EXPECT_EQ(of_one_access(16, [](auto t) { return t / 2 * 16; }).wavefronts, 2);
  EXPECT_EQ(of_one_access(16, [](auto t) { return (t / 4 * 2 + t % 2) * 16; }).wavefronts, 2);
  EXPECT_EQ(of_one_access(16, [](auto t) { return t % 4 * 16; }).wavefronts, 4) << "lanes n and n^4 share";
  EXPECT_EQ(of_one_access(16, uniform, AccessKind::store).wavefronts, 4) << "a store returns nothing";
}

TEST(SharedSites, CountAWarpOfFewThreadsByThoseThatTakePart) {
  BlockTrace trace = block_of(36);  // a warp and four threads more
  access(trace, 16, [](auto t) { return t * 16; });
  const SharedSite sum = total(shared_sites(trace));
  EXPECT_EQ(sum.instructions, 2);
  EXPECT_EQ(sum.wavefronts, 4 + 1);
}

TEST(SharedSites, JoinNeighboursThatAreAlignedInEveryLane) {
  const auto joined_bytes = [](std::uint32_t start) {
    BlockTrace trace = block_of(32);
    for (std::uint32_t i = 0; i < 4; ++i) access(trace, 4, [=](auto t) { return start + t * 16 + i * 4; });
    const auto sites = shared_sites(trace);
    return std::pair(sites.front().bytes, total(sites).instructions);
  };
  EXPECT_EQ(joined_bytes(0), std::pair(16u, std::int64_t{1}));
  EXPECT_EQ(joined_bytes(8), std::pair(8u, std::int64_t{2}));

  BlockTrace ragged = block_of(32);  // one lane's address is no multiple of 8
  for (std::uint32_t i = 0; i < 2; ++i) access(ragged, 4, [=](auto t) { return t * 4 + i * 4; });
  EXPECT_EQ(total(shared_sites(ragged)).instructions, 2);
}

TEST(SharedSites, KeepAWordInARegisterUntilTheNextBarrier) {
  const auto load = [](BlockTrace& trace, std::uint32_t barriers) {
    access(
        trace, 4, [](auto t) { return t * 4; }, AccessKind::load, barriers);
  };
  BlockTrace twice = block_of(32);
  load(twice, 0);
  load(twice, 0);
  EXPECT_EQ(total(shared_sites(twice)).instructions, 1);

  BlockTrace across = block_of(32);
  load(across, 0);
  load(across, 1);
  EXPECT_EQ(total(shared_sites(across)).instructions, 2);

  BlockTrace written_between = block_of(32);
  load(written_between, 0);
  access(
      written_between, 4, [](auto t) { return t * 4; }, AccessKind::store);
  load(written_between, 0);
  EXPECT_EQ(total(shared_sites(written_between)).instructions, 3);
}

TEST(SharedSites, OfNoAccessAreNone) {
  EXPECT_TRUE(shared_sites(block_of(64)).empty());
  EXPECT_EQ(total({}).conflict_share(), 0.0);
}

}  // namespace
}  // namespace convmish
