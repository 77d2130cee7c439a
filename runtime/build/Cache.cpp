// The kernel cache on disk; Cache.h states the contract.
#include "runtime/build/Cache.h"

#include "kernel/Error.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Sha256.h"

#include <algorithm>
#include <system_error>

namespace weft::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *textFile = "kernel.cu";
constexpr const char *cubinFile = "kernel.cubin";
constexpr const char *metaFile = "meta.json";

/// Of everything that an entry holds and of the key that it is found by: an entry under another key
/// is damaged, too.
std::string hashOf(const std::string &key, const CacheEntry &entry) {
  Sha256 hash;
  hash.updateField(key)
      .updateField(entry.text)
      .updateField(entry.cubin)
      .updateField(entry.entry)
      .updateField(entry.log);
  for (const auto &[name, value] : entry.fields) hash.updateField(name).updateField(value);
  return hash.finish();
}

std::string metaText(const std::string &key, const CacheEntry &entry) {
  return prettyText({{"key", key},
                     {"entry", entry.entry},
                     {"log", entry.log},
                     {"fields", entry.fields},
                     {"sha256", hashOf(key, entry)}});
}

/// An entry of a weft before the whole entry was hashed: built again without a word.
struct OlderEntry : std::runtime_error {
  OlderEntry() : std::runtime_error("it is of an older weft") {}
};

std::string textIn(const json &meta, const char *name) {
  const auto found = meta.find(name);
  if (found == meta.end() || !found->is_string())
    throw Error::checkFailed("{}: \"{}\" is no text", metaFile, name);
  return found->get<std::string>();
}

/// Reads and checks one entry. Throws std::exception with the reason if anything is missing or is
/// not, byte for byte, what was written.
CacheEntry readEntry(const fs::path &folder) {
  const std::string key = folder.filename().string(), text = readFile(folder / metaFile);
  if (folder.parent_path().filename() != key.substr(0, 2))
    throw Error::checkFailed("it lies in the folder of other keys");
  const json meta = parseJson(text, metaFile);
  if (!meta.is_object()) throw Error::checkFailed("{} is no object", metaFile);
  if (meta.contains("sha256") && meta["sha256"].is_object()) throw OlderEntry();
  CacheEntry entry{.text = readFile(folder / textFile),
                   .cubin = readFile(folder / cubinFile),
                   .entry = textIn(meta, "entry"),
                   .log = textIn(meta, "log"),
                   .fields = {}};
  if (meta.contains("fields") && meta["fields"].is_object())
    for (const auto &[name, value] : meta["fields"].items())
      entry.fields[name] = textIn(meta["fields"], name.c_str());
  if (textIn(meta, "key") != key) throw Error::checkFailed("{} is of another entry", metaFile);
  if (text != metaText(key, entry)) throw Error::checkFailed("it does not match its recorded hash");
  return entry;
}

/// What is remembered lies in one folder, which is no shard of entries.
constexpr const char *textsFolder = "times";

std::string rememberedHash(const std::string &key, const std::string &text) {
  return Sha256().updateField(key).updateField(text).finish();
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

/// Folders of all entries, sorted by key. Only what has the shape ROOT/KK/KEY is ours to count or
/// remove.
std::vector<fs::path> entriesIn(const fs::path &root) {
  std::vector<fs::path> entries;
  std::error_code none;
  for (const fs::directory_entry &shard : fs::directory_iterator(root, none))
    for (const fs::directory_entry &entry : fs::directory_iterator(shard.path(), none))
      if (shard.path().filename() != textsFolder && isEntryName(entry.path().filename().string()))
        entries.push_back(entry.path());
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
    fs::last_write_time(folder, fs::file_time_type::clock::now(),
                        none);  // for collect(): when it was last used
    return entry;
  } catch (const OlderEntry &) {
  } catch (const std::exception &error) {
    if (!fs::exists(folder, none))
      return std::nullopt;  // collected by another process while we read
    note(fmt::format("cache entry {} is damaged ({}) and is built again", folder.string(),
                     error.what()));
  }
  try {
    removeEntry(folder);
  } catch (const std::system_error &) {
    // A read-only cache: the entry stays, and is rejected again next time.
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
    writeFile(temporary.path() / metaFile, metaText(key, entry), Durability::cached);
    temporary.publish();  // false: another process was first, with the same content
  } catch (const std::system_error &error) {
    writable = false;
    note(fmt::format("the kernel cache cannot be written, so nothing is kept in it: {}",
                     error.what()));
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
  std::error_code none;
  std::vector<fs::path> texts;
  for (const fs::directory_entry &text : fs::directory_iterator(root / textsFolder, none))
    if (isEntryName(text.path().filename().string())) texts.push_back(text.path());
  std::ranges::sort(texts);
  for (const fs::path &text : texts)
    if (!recall(text.filename().string()))
      found.push_back(fmt::format("{}: it does not match its recorded hash", text.string()));
  return found;
}

std::vector<std::map<std::string, std::string>> Cache::fields() const {
  std::vector<std::map<std::string, std::string>> all;
  for (const fs::path &entry : entriesIn(root)) {
    try {
      all.push_back(readEntry(entry).fields);
    } catch (const std::exception &) {}
  }
  return all;
}

std::optional<std::string> Cache::recall(const std::string &key) const {
  const fs::path file = root / textsFolder / key;
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  try {
    const std::string content = readFile(file);
    const size_t end = content.find('\n');
    if (end == content.npos ||
        content.substr(0, end) != rememberedHash(key, content.substr(end + 1)))
      return std::nullopt;
    return content.substr(end + 1);
  } catch (const std::system_error &) {
    return std::nullopt;
  }
}

void Cache::remember(const std::string &key, const std::string &text) const {
  const fs::path file = root / textsFolder / key;
  std::error_code none;
  fs::create_directories(file.parent_path(), none);
  if (none) return;
  try {
    // In one step: of a process that is killed meanwhile no part is found.
    removeLeftovers(file);
    const TemporaryFolder temporary(file);
    writeFile(temporary.path() / textFile, rememberedHash(key, text) + "\n" + text,
              Durability::cached);
    fs::rename(temporary.path() / textFile, file);
  } catch (const std::system_error &) {
    fs::remove(file, none);
  }
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

std::optional<fs::path> knownCacheFolder() {
  if (const auto folder = environmentValue("WEFT_CACHE_DIR")) return *folder;
  if (const auto folder = environmentValue("XDG_CACHE_HOME")) return fs::path(*folder) / "weft";
  if (const auto folder = environmentValue("HOME")) return fs::path(*folder) / ".cache" / "weft";
  return std::nullopt;
}

fs::path cacheFolder() {
  if (const auto folder = knownCacheFolder()) return *folder;
  throw Error::badInput("no folder for the kernel cache: {}", noCacheFolder);
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
    std::filesystem::remove_all(
        cacheFolder() / textsFolder);  // what selection remembers: a few bytes, soon found again
    return theCache().collect(keepBytes);
  } catch (const std::system_error &error) {
    throw Error::badInput("cannot remove from the kernel cache: {}", error.what());
  }
}

}  // namespace weft::runtime
