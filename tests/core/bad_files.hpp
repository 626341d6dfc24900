// Folders of files that must be refused, each with its message in the folder's messages.txt.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace convmish {

/// A line "FILE: message".
struct BadFile {
  std::string file, message;

  std::string name() const { return std::filesystem::path(file).stem().string(); }  // of a test
};

inline std::vector<BadFile> bad_files(const std::filesystem::path& folder) {
  std::vector<BadFile> list;
  std::ifstream lines(folder / "messages.txt");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    list.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  return list;
}

/// Whether there is a message for each file, and a file for each message.
inline bool each_has_its_message(const std::filesystem::path& folder) {
  std::set<std::string> files, told;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json")
      files.insert(std::filesystem::relative(entry.path(), folder).string());
  for (const BadFile& bad : bad_files(folder)) told.insert(bad.file);
  return files == told;
}

}  // namespace convmish
