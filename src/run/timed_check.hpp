// Do timed launches do the work that was verified?
//
// Nothing tells a timed launch from another to the variant: y is not poisoned before it, and what it left
// behind is looked at for some of the launches only, outside the time, chosen by chance that the run's seed
// does not fix: what is predictable could be worked for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "run/prepared.hpp"

namespace convmish {

/// Timed launches take turns with these x; the weights are those of the first set.
using InputSets = std::array<Inputs*, 2>;

class TimedCheck {
 public:
  TimedCheck(Device& device, InputSets inputs);

  /// Before the timing: runs the variant once on each input set and judges it. One that passes gets the next
  /// index and is remembered by the bits of its outputs.
  FillResult admit(PreparedVariant& variant, SharedOutput& output);

  /// To be told after each timed launch, while y is as the launch left it.
  void after_launch(std::size_t variant, std::size_t input_set, bool last);

  /// Makes good what any variant may have damaged: the next is not to be blamed for it.
  void restore();

  /// After all timed launches: changes an x in place, each time in another way. First one element, twice:
  /// what is kept from earlier launches is wrong now, unless it is known by a sign that takes in this very
  /// element. Then the whole x, as `normal`: the timed plan is held to its class by the fingerprint too.
  enum class Change { element, other_element, normal };
  static constexpr std::array kChanges{Change::element, Change::other_element, Change::normal};
  void change_x(Change change);
  /// Launches a variant on the changed x the way it was timed. What was found against its launches so far;
  /// nothing if they did their work.
  std::optional<std::string> verdict(std::size_t variant);

 private:
  struct Entry {
    PreparedVariant* variant;
    SharedOutput* output;
    std::array<std::uint64_t, std::tuple_size_v<InputSets>> bits;
    double launch_ms;      // about, by the host's clock
    std::int64_t watched;  // the launch behind which one is watched for work beside the stream
    bool repeatable = true;
    std::int64_t launches = 0;
    std::optional<std::string> failure;
    bool damages = false;                  // what it was not to write to
    std::optional<std::string> suspicion;  // damage that came to light at this variant's look
  };

  std::optional<std::string> look(Entry& entry, std::size_t input_set);
  std::optional<std::string> watch(Entry& entry, std::size_t input_set);
  /// By whichever variant, to anything that is not to be written to.
  std::optional<std::string> damage(SharedOutput& output);
  void restore(SharedOutput& output);
  std::optional<std::string> own_damage(Entry& entry, std::size_t input_set);

  Device& device_;
  InputSets inputs_;
  std::mt19937_64 random_;
  std::vector<Entry> entries_;
  bool damaged_ = false;        // by someone: from then on every launch is looked at
  bool culprit_found_ = false;  // by whom
};

}  // namespace convmish
