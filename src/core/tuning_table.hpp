// Which of a variant's configurations was measured fastest: by device, variant and shape.
//
//   {"devices": {"NVIDIA H200": {"mma_fp16x1:tf32": {"n64c64h256w256k128": "8x32x128w16"}}}}
//
// A device is known by its name, a variant by name and math class.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/registry.hpp"
#include "core/shape.hpp"
#include "core/variant.hpp"

namespace convmish {

class JsonNode;

class TuningTable {
 public:
  /// Reads a file. Every mistake is an InputError "FILE: /json/pointer: what is wrong; what would be right".
  static TuningTable load(const std::filesystem::path& path);
  /// The same of a text that `source` names in messages.
  static TuningTable parse(std::string_view text, const std::string& source);

  /// What was fastest; nothing where that was not measured.
  std::optional<std::string> find(const DeviceInfo& device, const Variant& variant, const Shape& shape) const;

  void set(const DeviceInfo& device, const Variant& variant, const Shape& shape, std::string configuration);

  /// Takes over what another table says, also where both speak.
  void adopt(const TuningTable& other);

  /// Whether all that the table says of a device can be done. Throws InputError, as load() does, for a
  /// variant that the registry does not have for it, or a configuration that the variant does not have.
  void check(const DeviceInfo& device, const Registry& registry) const;

  std::string to_json() const;

 private:
  struct ByCount {  // of shapes: as a sweep's loops go
    bool operator()(const Shape& a, const Shape& b) const;
  };
  using OfVariant = std::map<Shape, std::string, ByCount>;
  using OfDevice = std::map<std::string, OfVariant>;

  static TuningTable read(const JsonNode& root, const std::string& source);

  std::string source_;        // for messages
  std::string schema_, why_;  // remarks, which to_json() keeps
  std::map<std::string, OfDevice> devices_;
};

/// configs/tune.json as it was when the tool was built.
const TuningTable& shipped_tuning_table();

}  // namespace convmish
