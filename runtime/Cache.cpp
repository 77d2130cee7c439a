// The kernel cache on disk; Cache.h states the contract.
#include "runtime/Cache.h"

#include "kernel/Error.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/JsonText.h"
#include "runtime/Sha256.h"

#include <algorithm>
#include <system_error>

namespace weft::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *textFile = "kernel.cu";
constexpr const char *cubinFile = "kernel.cubin";
constexpr const char *metaFile = "meta.json";

json metaOf(const std::string &key, const CacheEntry &entry) {
  return {{"key", key},
          {"entry", entry.entry},
          {"log", entry.log},
          {"parts", entry.parts},
          {"sha256", {{cubinFile, sha256(entry.cubin)}, {textFile, sha256(entry.text)}}}};
}

/// Reads and checks one entry. Throws std::exception with the reason if anything is missing or does not match.
CacheEntry readEntry(const fs::path &folder) {
  const json meta = parseJson(readFile(folder / metaFile), metaFile);
  CacheEntry entry{.text = readFile(folder / textFile),
                   .cubin = readFile(folder / cubinFile),
                   .entry = meta.at("entry").get<std::string>(),
                   .log = meta.at("log").get<std::string>(),
                   .parts = meta.at("parts").get<std::map<std::string, std::string>>()};
  if (meta.at("key") != folder.filename().string()) throw Error::checkFailed("meta.json is of another entry");
  if (meta.at("sha256").at(cubinFile) != sha256(entry.cubin))
    throw Error::checkFailed("{} does not match its recorded hash", cubinFile);
  if (meta.at("sha256").at(textFile) != sha256(entry.text))
    throw Error::checkFailed("{} does not match its recorded hash", textFile);
  return entry;
}

/// Takes the entry away in one step, then deletes it: no reader sees a part of it.
void removeEntry(const fs::path &folder) {
  const TemporaryFolder grave(folder);
  fs::rename(folder, grave.path() / "entry");
}

int64_t bytesIn(const fs::path &folder) {
  int64_t bytes = 0;
  std::error_code none;
  for (const fs::directory_entry &file : fs::directory_iterator(folder, none)) {
    const auto size = file.file_size(none);
    if (!none) bytes += int64_t(size);
  }
  return bytes;
}

bool isEntryName(const std::string &name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

/// Folders of all entries, sorted by key. Only what has the shape ROOT/KK/KEY is ours to count or remove.
std::vector<fs::path> entriesIn(const fs::path &root) {
  std::vector<fs::path> entries;
  std::error_code none;
  for (const fs::directory_entry &shard : fs::directory_iterator(root, none))
    for (const fs::directory_entry &entry : fs::directory_iterator(shard.path(), none))
      if (isEntryName(entry.path().filename().string())) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

std::optional<CacheEntry> Cache::find(const std::string &key) const {
  const fs::path folder = folderOf(key);
  std::error_code none;
  if (!fs::exists(folder, none)) return std::nullopt;
  try {
    CacheEntry entry = readEntry(folder);
    fs::last_write_time(folder, fs::file_time_type::clock::now(), none);  // for collect(): when it was last used
    return entry;
  } catch (const std::exception &error) {
    if (!fs::exists(folder, none)) return std::nullopt;  // collected by another process while we read
    note(fmt::format("cache entry {} is damaged ({}) and is built again", folder.string(), error.what()));
  }
  try {
    removeEntry(folder);
  } catch (const std::system_error &) {
    // A read-only cache: the entry stays, and is refused again next time.
  }
  return std::nullopt;
}

void Cache::store(const std::string &key, const CacheEntry &entry) {
  if (!writable) return;
  try {
    const fs::path folder = folderOf(key);
    removeLeftovers(folder);
    TemporaryFolder temporary(folder);
    writeFile(temporary.path() / textFile, entry.text, Durability::cached);
    writeFile(temporary.path() / cubinFile, entry.cubin, Durability::cached);
    writeFile(temporary.path() / metaFile, prettyText(metaOf(key, entry)), Durability::cached);
    temporary.publish();  // false: another process was first, with the same content
  } catch (const std::system_error &error) {
    writable = false;
    note(fmt::format("the kernel cache cannot be written, so nothing is kept in it: {}", error.what()));
  }
}

CacheStatistics Cache::statistics() const {
  CacheStatistics statistics{.folder = root};
  for (const fs::path &entry : entriesIn(root)) {
    ++statistics.entries;
    statistics.bytes += bytesIn(entry);
  }
  return statistics;
}

std::vector<std::string> Cache::damaged() const {
  std::vector<std::string> found;
  for (const fs::path &entry : entriesIn(root)) {
    try {
      readEntry(entry);
    } catch (const std::exception &error) {
      found.push_back(fmt::format("{}: {}", entry.string(), error.what()));
    }
  }
  return found;
}

int64_t Cache::collect(int64_t keepBytes) const {
  struct Candidate {
    fs::file_time_type used;
    fs::path folder;
    int64_t bytes;
    auto operator<=>(const Candidate &) const = default;
  };
  std::vector<Candidate> candidates;
  std::error_code none;
  int64_t total = 0, freed = 0;
  for (const fs::path &folder : entriesIn(root)) {
    candidates.push_back({fs::last_write_time(folder, none), folder, bytesIn(folder)});
    total += candidates.back().bytes;
  }
  std::ranges::sort(candidates);
  for (const Candidate &candidate : candidates) {
    if (total - freed <= keepBytes) break;
    removeEntry(candidate.folder);
    freed += candidate.bytes;
  }
  for (const fs::directory_entry &shard : fs::directory_iterator(root, none))
    freed += removeAllLeftovers(shard.path());
  return freed;
}

fs::path cacheFolder() {
  if (const auto folder = environmentValue("WEFT_CACHE_DIR")) return *folder;
  if (const auto folder = environmentValue("XDG_CACHE_HOME")) return fs::path(*folder) / "weft";
  if (const auto folder = environmentValue("HOME")) return fs::path(*folder) / ".cache" / "weft";
  throw Error::badInput("no folder for the kernel cache: none of WEFT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

namespace {
Cache theCache() {
  return Cache(cacheFolder(), [](const std::string &) {});
}
}  // namespace

CacheStatistics cacheStatistics() { return theCache().statistics(); }
std::vector<std::string> cacheVerify() { return theCache().damaged(); }
int64_t cacheCollect(int64_t keepBytes) {
  try {
    std::filesystem::remove_all(cacheFolder() / "times");  // what selection remembers: a few bytes, soon found again
    return theCache().collect(keepBytes);
  } catch (const std::system_error &error) {
    throw Error::badInput("cannot remove from the kernel cache: {}", error.what());
  }
}

}  // namespace weft::runtime
