// Versions of libraries that are loaded at run time. Who loads a library registers how to ask it; who
// describes the machine asks by name, and neither includes the other.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace convmish {

using LibraryVersions = std::map<std::string, std::function<std::string()>>;

inline LibraryVersions& library_versions() {
  static LibraryVersions versions;
  return versions;
}

/// Adds a library during static initialisation; `version` returns an empty string where it cannot be loaded.
struct RegisterLibraryVersion {
  RegisterLibraryVersion(std::string library, std::function<std::string()> version) {
    library_versions().insert_or_assign(std::move(library), std::move(version));
  }
};

/// Empty where the library is not part of this build or cannot be loaded here.
inline std::string library_version(const std::string& library) {
  const auto found = library_versions().find(library);
  return found == library_versions().end() ? std::string() : found->second();
}

}  // namespace convmish
