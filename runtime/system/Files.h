// Files and folders that are either there and whole, or not there. A folder is filled under a
// temporary name beside its target and then renamed; a process that is killed meanwhile leaves only
// the temporary one, recognised and removed by the next writer. Errors are std::system_error with
// the path in the text: callers add what they were doing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

/// Of regular files alone: a pipe may never end, and neither does a device.
std::string readFile(const std::filesystem::path &path);

enum class Durability {
  synced,  ///< on the disk when the call returns
  cached,  ///< left to the operating system: for what can be made again
};
/// Creates or replaces the file.
void writeFile(const std::filesystem::path &path, std::string_view bytes,
               Durability durability = Durability::synced);

/// Creates or replaces a file that a person named: written beside it and renamed, so that a failure
/// leaves the old one. A link is followed; what is no regular file, such as a pipe, is written to.
void replaceFile(const std::filesystem::path &path, std::string_view bytes);

/// Keeps other processes and threads that lock the same folder waiting while it lives (flock);
/// leaves nothing behind.
class FolderLock {
public:
  explicit FolderLock(const std::filesystem::path &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int descriptor = -1;
};

/// A folder under construction: ".NAME.weft-tmp-XXXXXX" beside the target NAME, removed on
/// destruction unless published. It is locked (flock) while its writer lives, which is how a later
/// writer tells a dead one's leftovers from ours.
class TemporaryFolder {
public:
  /// Creates the parent folders too.
  explicit TemporaryFolder(const std::filesystem::path &target);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::filesystem::path &path() const { return folder; }

  /// Renames to the target. False if a non-empty target already exists; the temporary folder then
  /// stays ours.
  bool publish();
  /// Renames to the target; a target that exists is exchanged with it and removed. At no moment is
  /// there neither.
  void publishReplacing();

private:
  std::filesystem::path target, folder;
  int lock = -1;
};

/// Removes temporary folders of `target` whose writer is dead, and brings back the target if a
/// writer died while it was moved away.
void removeLeftovers(const std::filesystem::path &target);
/// Removes temporary folders of every target in `folder` whose writer is dead; returns the bytes of
/// their files.
int64_t removeAllLeftovers(const std::filesystem::path &folder);

}  // namespace weft::runtime
