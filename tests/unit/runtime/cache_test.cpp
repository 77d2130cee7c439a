// The kernel cache as a store, without a compiler.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/build/Cache.h"
#include "runtime/system/Files.h"
#include "runtime/system/Sha256.h"
#include "tests/support/TemporaryTestFolder.h"

#include <chrono>

using namespace weft;
using namespace weft::runtime;
using weft::test::TemporaryTestFolder;
namespace fs = std::filesystem;

namespace {

CacheEntry entryOf(const std::string &name) {
  return {.text = "text of " + name,
          .cubin = std::string("\0\x7f", 2) + name,
          .entry = name,
          .log = "",
          .fields = {{"text", name}}};
}

struct Fixture {
  TemporaryTestFolder folder;
  std::vector<std::string> notes;
  Cache cache{folder / "cache", [this](const std::string &text) { notes.push_back(text); }};

  std::string store(const std::string &name) {
    const std::string key = sha256(name);
    cache.store(key, entryOf(name));
    return key;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "what is stored is found, and nothing else") {
  const std::string key = store("one");
  CHECK(cache.find(key) == entryOf("one"));
  CHECK_FALSE(cache.find(sha256("two")).has_value());
  CHECK(notes.empty());
}

TEST_CASE_METHOD(Fixture, "the first of two writers wins, quietly") {
  const std::string key = store("one");
  cache.store(key, entryOf("other"));
  CHECK(cache.find(key) == entryOf("one"));
  CHECK(notes.empty());
  CHECK(cache.statistics().entries == 1);
}

TEST_CASE_METHOD(Fixture, "an entry under another's key is rejected") {
  const std::string one = store("one"), two = sha256("two");
  fs::create_directories(cache.folderOf(two).parent_path());
  fs::copy(cache.folderOf(one), cache.folderOf(two));
  CHECK_FALSE(cache.find(two).has_value());
  CHECK(notes.size() == 1);
  CHECK_FALSE(fs::exists(cache.folderOf(two)));
  CHECK(cache.find(one).has_value());
}

TEST_CASE_METHOD(Fixture, "an empty or truncated entry is rejected") {
  const std::string key = store("one");
  for (const char *file : {"kernel.cubin", "kernel.cu", "meta.json"}) {
    writeFile(cache.folderOf(key) / file, "");
    CHECK(cache.damaged().size() == 1);
    CHECK_FALSE(cache.find(key).has_value());
    store("one");
    CHECK(cache.find(key) == entryOf("one"));
  }
  CHECK(notes.size() == 3);
}

TEST_CASE_METHOD(Fixture, "collection removes those unused longest first") {
  std::vector<std::string> keys{store("a"), store("b"), store("c")};
  const auto now = fs::file_time_type::clock::now();
  for (size_t i = 0; i < keys.size(); ++i)
    fs::last_write_time(cache.folderOf(keys[i]), now - std::chrono::hours(10 - i));
  CHECK(cache.find(keys[0]).has_value());  // used: now the youngest
  const int64_t bytes = cache.statistics().bytes, each = bytes / 3;
  CHECK(cache.collect(bytes) == 0);
  CHECK(cache.collect(2 * each) == each);
  CHECK_FALSE(cache.find(keys[1]).has_value());
  CHECK(cache.find(keys[0]).has_value());
  CHECK(cache.collect(0) == 2 * each);
  CHECK(cache.statistics().entries == 0);
  CHECK(notes.empty());
}

TEST_CASE_METHOD(Fixture,
                 "collection leaves alone what is no entry, and takes what dead writers left") {
  const std::string key = store("one");
  const fs::path shard = cache.folderOf(key).parent_path();
  writeFile(folder / "cache/README", "mine");
  const fs::path dead = shard / ("." + key + ".weft-tmp-abcdef");
  fs::create_directory(dead);
  writeFile(dead / "kernel.cu", "half");
  {
    const TemporaryFolder alive(shard / sha256("another"));
    CHECK(cache.collect(0) > 4);
    CHECK(fs::exists(alive.path()));
  }
  CHECK_FALSE(fs::exists(dead));
  CHECK(readFile(folder / "cache/README") == "mine");
}

TEST_CASE_METHOD(Fixture, "a cache that does not exist is empty") {
  CHECK(cache.statistics().entries == 0);
  CHECK(cache.damaged().empty());
  CHECK(cache.collect(0) == 0);
}

TEST_CASE_METHOD(
    Fixture,
    "any flipped byte of an entry is a miss, which the next store replaces, and verify sees each") {
  const std::string key = store("one");
  size_t flips = 0;
  for (const char *file : {"kernel.cubin", "kernel.cu", "meta.json"}) {
    const fs::path path = cache.folderOf(key) / file;
    const std::string whole = readFile(path);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] ^= 1;
      writeFile(path, flipped, Durability::cached);
      INFO(file << " at " << at);
      CHECK(cache.damaged().size() == 1);
      CHECK_FALSE(cache.find(key).has_value());
      CHECK_FALSE(fs::exists(cache.folderOf(key)));
      store("one");
      CHECK(readFile(path) == whole);
      ++flips;
    }
  }
  CHECK(flips > 200);
  CHECK(cache.find(key) == entryOf("one"));
  CHECK(cache.damaged().empty());
}

TEST_CASE_METHOD(Fixture,
                 "an entry whose log, entry or fields were exchanged for another's is rejected") {
  const std::string one = store("one"), two = store("two");
  const std::string meta = readFile(cache.folderOf(two) / "meta.json");
  std::string adopted = meta;
  for (size_t at; (at = adopted.find(two)) != adopted.npos;) adopted.replace(at, two.size(), one);
  writeFile(cache.folderOf(one) / "meta.json", adopted);
  CHECK_FALSE(cache.find(one).has_value());
  CHECK(cache.find(two) == entryOf("two"));
}

TEST_CASE_METHOD(Fixture, "an entry in the folder of other keys is damage") {
  const std::string one = store("one");
  const std::string other = one.substr(0, 2) == "00" ? "01" : "00";
  fs::create_directories(folder / "cache" / other);
  fs::copy(cache.folderOf(one), folder / "cache" / other / one);
  REQUIRE(cache.damaged().size() == 1);
  CHECK(cache.damaged().front().find("folder of other keys") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "an entry of an older weft is built again without a word") {
  const std::string key = store("one");
  writeFile(cache.folderOf(key) / "meta.json",
            R"({"key": ")" + key +
                R"(", "entry": "one", "log": "", "fields": {}, "sha256": {"kernel.cu": "0", )"
                R"("kernel.cubin": "0"}})");
  CHECK_FALSE(cache.find(key).has_value());
  CHECK(notes.empty());
  store("one");
  CHECK(cache.find(key) == entryOf("one"));
}

TEST_CASE_METHOD(Fixture,
                 "a remembered text is recalled by its key alone, and a damaged one is forgotten") {
  const std::string key = sha256("question"), other = sha256("other question");
  CHECK_FALSE(cache.recall(key).has_value());
  cache.remember(key, R"({"fused": 1e-05})");
  CHECK(cache.recall(key) == R"({"fused": 1e-05})");
  CHECK(cache.statistics().entries == 0);
  const fs::path file = folder / "cache/times" / key;
  const std::string whole = readFile(file);
  writeFile(folder / "cache/times" / other, whole);
  CHECK_FALSE(cache.recall(other).has_value());
  CHECK(cache.damaged().size() == 1);
  fs::remove(folder / "cache/times" / other);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    writeFile(file, flipped, Durability::cached);
    INFO(at);
    CHECK_FALSE(cache.recall(key).has_value());
    CHECK(cache.damaged().size() == 1);
  }
  writeFile(file, whole.substr(0, whole.size() / 2));
  CHECK_FALSE(cache.recall(key).has_value());
  cache.remember(key, "anew");
  CHECK(cache.recall(key) == "anew");
}
