// The table of variants, filled during static initialisation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/variant.hpp"

namespace convmish {

/// A variant is known by name, math class and device: `cudnn_unfused` exists in fp32 and in tf32.
class Registry {
 public:
  static Registry& instance();

  /// A second variant of the same name, math class and device is kept out and told by problems().
  void add(Variant variant);

  const std::vector<Variant>& variants() const { return variants_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<Variant> variants_;
  std::vector<std::string> problems_;
};

/// Why `pattern` can match no variant, whatever the registry holds; nothing if it is well formed.
std::optional<std::string> check_pattern(std::string_view pattern);

/// The variants of `device` that match a selection, a list of names with shell globs, of `all` and of
/// `ablation`, each optionally with its math class: `naive,cudnn_*:tf32`. Order: that of the registry, each
/// once. Group says which of them a pattern can match. Throws InputError naming the nearest valid name when
/// an item of the list matches nothing.
std::vector<const Variant*> select_variants(const Registry& registry, DeviceKind device,
                                            const std::vector<std::string>& patterns);

/// The variants of any device that match one item of a selection, in the order of the registry. Throws
/// InputError as select_variants does.
std::vector<const Variant*> find_variants(const Registry& registry, const std::string& pattern);

/// All variants of `device` in a group, in the order of the registry.
std::vector<const Variant*> variants_of_group(const Registry& registry, DeviceKind device, Group group);

/// Why `variant` cannot run on `device`, whatever the shape; nothing if it can.
std::optional<std::string> why_unavailable(const Variant& variant, const DeviceInfo& device);

}  // namespace convmish
