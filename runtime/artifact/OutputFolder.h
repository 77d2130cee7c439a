// The folder that an artifact is written to, which may hold an artifact, and files of its owner
// beside it.
//
// Only what weft wrote is replaced, and the manifest says what that is. Files that it does not list
// are their owner's: they are in the new folder as they were in the old one (the same files,
// linked). A file that weft wrote and a person edited is replaced only by who was asked to, or by
// who has read the edit. A folder without a manifest that holds anything is rejected by name, be it
// an artifact without manifest.json: --overwrite then takes what its plan.json names for weft's. A
// symbolic link is followed, never replaced.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::runtime {

/// What may be replaced beside unedited files.
struct Overwrite {
  bool everything = false;  ///< --overwrite: edited files, and an artifact without a manifest
  std::vector<std::string> edited{};  ///< these edited files, which the writer has read
};

class OutputFolder {
public:
  /// Throws Error(badInput) naming what stands in the way of writing an artifact there.
  OutputFolder(const std::filesystem::path &folder, const Overwrite &overwrite);

  /// Where to write: absolute, normalized, links followed. Throws Error(badInput) for a link to
  /// nothing.
  static std::filesystem::path targetOf(const std::filesystem::path &folder);
  /// Puts the owner's files into `next`, which will replace the folder. Throws Error(badInput)
  /// naming one that weft would write, too.
  void keepForeignFiles(const std::filesystem::path &next) const;

private:
  void findFiles(const Overwrite &overwrite);

  std::filesystem::path target;
  bool exists = false;
  std::vector<std::string>
      foreign;  ///< files, links, and folders of which nothing is weft's; sorted, folders first
};

}  // namespace weft::runtime
