// The kernel cache: a content-addressed store of cubins on disk, safe for any number of processes.
//
// An entry is the folder ROOT/KK/KEY (KK: the first two digits) with kernel.cu, kernel.cubin and
// meta.json. It appears by renaming a finished folder, so a reader sees all of it or none; of two
// writers of one key, one wins and both are right. meta.json holds a hash of the whole entry and
// its key; an entry that does not match it, byte for byte, is never used. So nothing is flushed to
// disk: a torn write after a power cut is found like any other damage. Texts that are remembered by
// key (ROOT/times/KEY) begin with such a hash, too.
#pragma once

#include "runtime/build/Build.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

struct CacheEntry {
  std::string text;   ///< kernel.cu
  std::string cubin;  ///< kernel.cubin
  std::string entry, log;
  std::map<std::string, std::string> fields;  ///< of the key
  bool operator==(const CacheEntry &) const = default;
};

class Cache {
public:
  using Note = std::function<void(const std::string &)>;
  Cache(std::filesystem::path root, Note note) : root(std::move(root)), note(std::move(note)) {}

  /// A damaged entry is removed, noted and not returned.
  std::optional<CacheEntry> find(const std::string &key) const;
  /// Never throws for a folder that cannot be written: the first time, it is noted.
  void store(const std::string &key, const CacheEntry &entry);

  /// A text that was remembered by this key; nothing where there is none, or where its file is
  /// damaged.
  std::optional<std::string> recall(const std::string &key) const;
  /// Keeps a text for recall(). A folder that cannot be written is no error: what is remembered can
  /// be found again.
  void remember(const std::string &key, const std::string &text) const;

  /// The key fields of every entry that is whole.
  std::vector<std::map<std::string, std::string>> fields() const;

  CacheStatistics statistics() const;
  std::vector<std::string> damaged() const;
  int64_t collect(int64_t keepBytes) const;

  std::filesystem::path folderOf(const std::string &key) const {
    return root / key.substr(0, 2) / key;
  }

private:
  std::filesystem::path root;
  Note note;
  bool writable = true;
};

}  // namespace weft::runtime
