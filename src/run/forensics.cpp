#include "run/forensics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "check/acceptance.hpp"

namespace convmish {
namespace {

// --- Where --------------------------------------------------------------------------------------------

/// What the coordinates with a count have in common; nothing if that is all of the axis, no pattern, or what
/// chance could leave out.
std::optional<WrongPlace> place_on(Axis axis, const std::vector<std::int64_t>& counts) {
  const auto extent = static_cast<std::int64_t>(counts.size());
  std::vector<std::int64_t> hit;
  for (std::int64_t i = 0; i < extent; ++i)
    if (counts[static_cast<std::size_t>(i)] > 0) hit.push_back(i);
  const auto hits = static_cast<std::int64_t>(hit.size());
  // Wrong outputs that fell anywhere would have met the other coordinates that often: e^-5 is one in 150.
  constexpr double kLeastMissed = 5;
  const std::int64_t wrong = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (static_cast<double>(wrong) * static_cast<double>(extent - hits) <
      kLeastMissed * static_cast<double>(extent))
    return std::nullopt;
  if (hit.back() - hit.front() + 1 == hits) return WrongPlace{axis, hit.front(), hit.back(), {}};

  for (const std::int64_t period : {2, 4, 8, 16, 32, 64, 128}) {
    if (2 * period > extent) break;  // too short to have recurred
    std::vector<bool> remainders(static_cast<std::size_t>(period));
    for (const std::int64_t i : hit) remainders[static_cast<std::size_t>(i % period)] = true;
    const auto first = std::ranges::find(remainders, true) - remainders.begin();
    const auto end = std::find(remainders.begin() + first, remainders.end(), false) - remainders.begin();
    if (std::find(remainders.begin() + end, remainders.end(), true) != remainders.end()) continue;
    std::int64_t expected = 0;  // every coordinate of these remainders must have been hit
    for (std::int64_t i = 0; i < extent; ++i) expected += remainders[static_cast<std::size_t>(i % period)];
    if (expected == hits) return WrongPlace{axis, first, end - 1, period};
  }
  return std::nullopt;
}

// --- A sample of the outputs ----------------------------------------------------------------------------

struct Sample {
  Chunk::At at{};
  double y = 0;
  Operands operands;
  PreActivation right;
  bool wrong = false, zero_is_right = false;
};

void judge_sample(Sample& sample, const AcceptanceRule& rule) {
  const Judgement judgement = judge(sample.y, sample.right.z, sample.right.s, rule);
  sample.wrong = !judgement.right;
  sample.zero_is_right = judgement.zero_accepted;
}

/// Numbers drawn on the host, and so the time that a failure costs: about a second at most.
constexpr std::int64_t kMostDraws = std::int64_t{1} << 22;

/// Draws a coordinate with the probability of its count.
class Weighted {
 public:
  explicit Weighted(const std::vector<std::int64_t>& counts) {
    for (const std::int64_t count : counts) sums_.push_back((sums_.empty() ? 0 : sums_.back()) + count);
  }
  std::int64_t operator()(std::mt19937_64& random) const {
    // All counts are 0 where y healed meanwhile, by work that goes on outside the stream.
    const std::int64_t total = std::max<std::int64_t>(sums_.back(), 1);
    const auto target = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(total));
    const std::int64_t drawn = std::ranges::upper_bound(sums_, target) - sums_.begin();
    return std::min(drawn, static_cast<std::int64_t>(sums_.size()) - 1);
  }

 private:
  std::vector<std::int64_t> sums_;
};

/// Half of them from all of y, half where the counts say that outputs are wrong.
std::vector<std::int64_t> choose_outputs(const Shape& shape, const WrongCounts& counts,
                                         const ErrorSummary& error) {
  const Chunk whole{0, shape.n, 0, shape.k, 0, shape.p(), shape.q()};
  const std::int64_t outputs = whole.outputs();
  const std::int64_t limit = std::clamp<std::int64_t>(kMostDraws / (2 * shape.reduction()), 8, 4096);
  std::vector<std::int64_t> chosen;
  if (outputs <= limit) {
    for (std::int64_t i = 0; i < outputs; ++i) chosen.push_back(i);
    return chosen;
  }
  for (const auto& known : {error.first_wrong_at, error.worst_at})
    if (known) chosen.push_back(whole.index(known->n, known->k, known->p, known->q));
  std::mt19937_64 random;  // the same outputs each time
  const Weighted n(counts.n), k(counts.k), p(counts.p), q(counts.q);
  for (std::int64_t i = 0; i < limit / 2; ++i) {
    chosen.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(outputs)));
    chosen.push_back(whole.index(n(random), k(random), p(random), q(random)));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

/// Outputs that mistakes can be tried on: those that were written and should be finite.
std::vector<Sample> draw_samples(Device& device, const FailedCheck& failed, const WrongCounts& counts,
                                 const OperandSource& source) {
  const Comparison& c = failed.comparison;
  const Chunk whole{0, c.shape.n, 0, c.shape.k, 0, c.shape.p(), c.shape.q()};
  const Strides ys = y_strides(c.layout, c.shape);
  std::vector<Sample> samples;
  for (const std::int64_t index : choose_outputs(c.shape, counts, failed.error)) {
    Sample sample{.at = whole.at(index)};
    float y = 0;
    device.download(&y, c.y + ys.offset(sample.at.n, sample.at.k, sample.at.p, sample.at.q), sizeof y);
    if (std::bit_cast<std::uint32_t>(y) == failed.poison) continue;
    sample.y = static_cast<double>(y);
    sample.operands = source.operands(sample.at);
    sample.right = right_sums(sample.operands);
    if (std::isfinite(sample.right.z)) samples.push_back(std::move(sample));
  }
  if (c.algorithm == Algorithm::transform) {  // judged by the image's norm, which no sample knows: by its S
    double largest = 0;
    for (const Sample& sample : samples) largest = std::fmax(largest, sample.right.s);
    for (Sample& sample : samples) sample.right.s = largest;
  }
  for (Sample& sample : samples) judge_sample(sample, c.rule);
  return samples;
}

// --- Which --------------------------------------------------------------------------------------------

/// How well a mistake explains samples that are all wrong, or all right.
struct Explained {
  std::int64_t tried = 0, explained = 0;
  double ratios = 0;  // sum over those explained

  std::int64_t misses() const { return tried - explained; }
  bool nearly_all() const { return tried > 0 && 100 * misses() <= tried; }
};

Explained explain(const Mistake& mistake, const AcceptanceRule& rule, const OperandSource& source,
                  const std::vector<Sample>& samples, bool wrong) {
  Explained result;
  const std::int64_t allowed_misses = std::ranges::count(samples, wrong, &Sample::wrong) / 100;
  for (const Sample& sample : samples) {
    if (sample.wrong != wrong) continue;
    const auto sums = mistake.sums(source, sample.at, sample.operands);
    if (!sums) continue;
    // A sum that overflows explains NaN and infinity, but any other cause of them might as well.
    if (!std::isfinite(sums->z) && !std::isfinite(sample.y)) continue;
    ++result.tried;
    // S of the right sums too: a mistake rarely makes the sum of magnitudes larger, and a transform errs by
    // the image's.
    const Judgement judgement =
        judge_as(sample.y, sums->z, std::fmax(sums->s, sample.right.s), rule, mistake.activation);
    if (judgement.right) {
      ++result.explained;
      result.ratios += judgement.ratio;
    } else if (result.misses() > allowed_misses) {
      break;  // most mistakes end here, after a few samples
    }
  }
  return result;
}

struct Match {
  std::string name;
  bool everywhere;
  std::int64_t misses;
  double mean_ratio;
};

/// Mistakes that explain nearly all wrong samples by the rule, which the right result does not.
std::vector<Match> find_matches(const AcceptanceRule& rule, std::int64_t least_samples,
                                const OperandSource& source, const std::vector<Sample>& samples) {
  std::vector<Match> matches;
  for (const Mistake& mistake : known_mistakes(source.shape())) {
    const Explained wrong = explain(mistake, rule, source, samples, true);
    if (!wrong.nearly_all() || wrong.tried < least_samples) continue;
    const Explained right = explain(mistake, rule, source, samples, false);
    const bool everywhere = right.tried == 0 || right.nearly_all();
    matches.push_back({mistake.name, everywhere, wrong.misses() + (everywhere ? right.misses() : 0),
                       wrong.ratios / static_cast<double>(wrong.explained)});
  }
  return matches;
}

/// Keeps those that explain all outputs, if any do; of these those that miss the fewest, and come as near as
/// the best.
void keep_likeliest(std::vector<Match>& matches) {
  std::ranges::stable_sort(matches, {},
                           [](const Match& m) { return std::tuple(!m.everywhere, m.misses, m.mean_ratio); });
  if (matches.empty()) return;
  const Match best = matches.front();
  std::erase_if(matches, [&](const Match& match) {
    return match.everywhere != best.everywhere || match.misses > best.misses ||
           match.mean_ratio > 2 * best.mean_ratio + 0.05;
  });
}

void name_mistakes(Forensics& result, const FailedCheck& failed, const OperandSource& source,
                   const std::vector<Sample>& samples) {
  const AcceptanceRule& declared = failed.comparison.rule;
  AcceptanceRule strict = acceptance_rule(MathClass::fp32, source.shape(), false);
  strict.relative_delta = std::min(strict.relative_delta, declared.relative_delta);
  std::vector<Match> matches = find_matches(strict, 1, source, samples);
  // The rule of a coarser class leaves room for chance: few samples prove nothing.
  constexpr std::int64_t kLeastCoarseSamples = 16;
  if (matches.empty() && declared.relative_delta > strict.relative_delta)
    matches = find_matches(declared, kLeastCoarseSamples, source, samples);
  keep_likeliest(matches);
  for (const Match& match : matches) {
    result.matches_everywhere = match.everywhere;
    if (std::ranges::find(result.matches, match.name) == result.matches.end())
      result.matches.push_back(match.name);
  }
}

/// Whether the pre-activation alone tells wrong outputs from right ones.
void find_threshold(Forensics& result, const std::vector<Sample>& samples) {
  constexpr std::int64_t kLeastOfEach = 8;
  double least[2] = {HUGE_VAL, HUGE_VAL}, most[2] = {-HUGE_VAL, -HUGE_VAL};
  std::int64_t counts[2] = {};
  for (const Sample& sample : samples) {
    if (sample.zero_is_right) continue;  // far out in the tail, right says nothing
    const int wrong = sample.wrong;
    least[wrong] = std::fmin(least[wrong], sample.right.z);
    most[wrong] = std::fmax(most[wrong], sample.right.z);
    ++counts[wrong];
  }
  if (counts[0] < kLeastOfEach || counts[1] < kLeastOfEach) return;
  if (least[1] > most[0]) result.wrong_above_z = least[1];
  if (most[1] < least[0]) result.wrong_below_z = most[1];
}

// --- Text ---------------------------------------------------------------------------------------------

struct AxisText {
  std::string_view one, many;
  std::int64_t extent;
};

AxisText text_of(Axis axis, const Shape& shape) {
  switch (axis) {
    case Axis::n:
      return {"image", "images", shape.n};
    case Axis::k:
      return {"channel", "channels", shape.k};
    case Axis::p:
      return {"row", "rows", shape.p()};
    case Axis::q:
      break;
  }
  return {"column", "columns", shape.q()};
}

/// The blocks that kernels cut an axis into: is this the part that the last one leaves?
std::optional<std::int64_t> block_of_tail(std::int64_t tail, std::int64_t extent) {
  for (const std::int64_t block : {8, 16, 32, 64, 128})
    if (block < extent && extent % block == tail) return block;
  return std::nullopt;
}

std::string describe(const WrongPlace& place, const Shape& shape) {
  const auto [one, many, extent] = text_of(place.axis, shape);
  const std::string_view letter = to_string(place.axis);
  const std::int64_t count = place.last - place.first + 1;
  if (place.period) {
    if (count == 1) return fmt::format("{} with {} mod {} = {}", many, letter, *place.period, place.first);
    return fmt::format("{} with {} mod {} in {}-{}", many, letter, *place.period, place.first, place.last);
  }
  if (place.last < extent - 1 || place.first == 0)
    return count == 1 ? fmt::format("{} {}", one, place.first)
                      : fmt::format("{} {}-{}", many, place.first, place.last);
  if (count == 1) return fmt::format("{} {}-1", one, letter);
  const auto block = block_of_tail(count, extent);
  return fmt::format("the last {} {}{}", count, many,
                     block ? fmt::format(" ({} mod {})", letter, *block) : std::string());
}

std::string percent(double share) {
  return share < 0.0995 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

Forensics investigate(Device& device, const FailedCheck& failed) {
  const WrongCounts counts = device.count_wrong(failed.comparison, failed.poison);
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(failed.error.compared);
  };
  Forensics result{.wrong_share = share(failed.error.wrong),
                   .nan_share = share(failed.error.nan_outputs),
                   .poison_share = share(counts.poisoned)};
  for (const auto& [axis, of_axis] :
       {std::pair{Axis::n, &counts.n}, {Axis::k, &counts.k}, {Axis::p, &counts.p}, {Axis::q, &counts.q}})
    if (const auto place = place_on(axis, *of_axis)) result.places.push_back(*place);

  const OperandSource& source = failed.operands;
  const std::vector<Sample> samples = draw_samples(device, failed, counts, source);
  find_threshold(result, samples);
  name_mistakes(result, failed, source, samples);
  return result;
}

std::string describe(const Forensics& forensics, const Shape& shape) {
  std::vector<std::string> places;
  for (const WrongPlace& place : forensics.places) places.push_back(describe(place, shape));
  std::string where = "scattered";
  if (!places.empty())
    where = fmt::format("all in {}", fmt::join(places, ", "));
  else if (forensics.wrong_share > 0.5)
    where = forensics.wrong_share == 1 ? "everywhere" : "nearly everywhere";
  const bool explained = !forensics.matches.empty() && forensics.matches_everywhere;
  if (!explained && forensics.wrong_above_z)
    where += fmt::format(", all with z >= {:.4g}", *forensics.wrong_above_z);
  if (!explained && forensics.wrong_below_z)
    where += fmt::format(", all with z <= {:.4g}", *forensics.wrong_below_z);

  std::string text;
  if (forensics.poison_share > 0)
    text = fmt::format("poison left in {} of the outputs{}", percent(forensics.poison_share),
                       forensics.poison_share == forensics.wrong_share ? ", " : "; wrong ");
  else
    text = forensics.nan_share == forensics.wrong_share ? "NaN " : "wrong ";
  text += where;
  if (!forensics.matches.empty())
    text += fmt::format("; matches{}: {}", forensics.matches_everywhere ? "" : ", where wrong",
                        fmt::join(forensics.matches, " or "));
  return text;
}

}  // namespace convmish
