// The store: round trip with the text form, two writers, and files that are no store or are
// damaged.
#include "kernel/Error.h"
#include "runtime/measure/ProfileStore.h"
#include "tests/support/TemporaryTestFolder.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace weft;
using namespace weft::runtime;
using weft::test::TemporaryTestFolder;

namespace {

StoredMeasurement measurement(const std::string &configuration, double seconds,
                              MeasurementStatus status = MeasurementStatus::measured) {
  ProfileMeasurement measurement{.status = status,
                                 .seconds = status == MeasurementStatus::failed ? 0 : seconds,
                                 .n = 9,
                                 .spread = 0.01,
                                 .familyVersion = 1};
  if (status == MeasurementStatus::failed)
    measurement.reason = "it failed", measurement.n = 0, measurement.spread = 0;
  return {.kernel = "0123456789abcdef",
          .kernelName = "relu",
          .configuration = configuration,
          .measurement = measurement};
}

std::string rejection(const std::filesystem::path &path, const std::string &device = "h200") {
  try {
    ProfileStore(path, ProfileStore::Mode::create, device);
  } catch (const Error &error) {
    return error.kind == ErrorKind::badInput ? error.what() : "";
  }
  return "";
}

std::string contentOf(const std::filesystem::path &path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("what is written is read, in the text form and again") {
  const TemporaryTestFolder folder;
  const auto path = folder.path() / "a.db";
  {
    ProfileStore store(path, ProfileStore::Mode::create, "h200");
    store.write({measurement("loop 01>01", 1.23456e-6),
                 measurement("loop 10>10", 2e-6, MeasurementStatus::slow)},
                "cold, 1980 MHz");
    store.write({measurement("loop 01>10", 0, MeasurementStatus::failed)}, "cold, 1755 MHz");
    store.write({measurement("loop 01>01", 3e-6)}, "cold, 1755 MHz");  // measured again
  }
  const Profile profile = readProfile(path);
  CHECK(profile.device == "h200");
  CHECK(profile.protocols.size() == 2);
  REQUIRE(profile.measurementCount() == 3);
  CHECK(profile.kernels.begin()->second.measurements.at("loop 01>01").seconds == 3e-6);
  CHECK(profile.kernels.begin()->second.measurements.at("loop 01>10").reason == "it failed");
  std::ofstream(folder.path() / "a.txt") << printProfile(profile);
  CHECK(readProfile(folder.path() / "a.txt").measurementCount() == 3);

  ProfileStore other(folder.path() / "b.db", ProfileStore::Mode::create, "h200");
  CHECK(other.merge(profile) == 3);
  CHECK(other.merge(profile) == 0);
  CHECK(printProfile(other.read()) == printProfile(profile));
}

TEST_CASE("two writers do not lose each other's measurements") {
  const TemporaryTestFolder folder;
  const auto path = folder.path() / "a.db";
  ProfileStore first(path, ProfileStore::Mode::create, "h200"),
      second(path, ProfileStore::Mode::create, "h200");
  for (int i = 0; i < 20; ++i) {
    first.write({measurement(fmt::format("loop 01>01 threads={}", 2 * i + 1), 1e-6)}, "one");
    second.write({measurement(fmt::format("loop 01>01 threads={}", 2 * i + 2), 1e-6)}, "two");
  }
  CHECK(first.read().measurementCount() == 40);
  CHECK(second.read().protocols.size() == 2);
}

TEST_CASE("what is no store, damaged, or of another device is rejected and left as it is") {
  const TemporaryTestFolder folder;
  const auto text = folder.path() / "text.db";
  std::ofstream(text) << "this is no database, but long enough to be one, were it one";
  CHECK(rejection(text).find("no SQLite database") != std::string::npos);
  CHECK(contentOf(text).starts_with("this is no database"));

  const auto path = folder.path() / "a.db";
  {
    ProfileStore store(path, ProfileStore::Mode::create, "h200");
    std::vector<StoredMeasurement> measurements;
    for (int i = 0; i < 2000; ++i)
      measurements.push_back(measurement(fmt::format("loop 01>01 threads={}", i), 1e-6));
    store.write(measurements, "cold");
  }
  CHECK(rejection(path).empty());
  CHECK(rejection(path, "a100").find("measured on 'h200'") != std::string::npos);

  std::string bytes = contentOf(path);
  REQUIRE(bytes.size() > 20000);
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = char(0xa5);
  const auto damaged = folder.path() / "damaged.db";
  std::ofstream(damaged, std::ios::binary) << bytes;
  CHECK(rejection(damaged).find("damaged") != std::string::npos);
  CHECK(contentOf(damaged) == bytes);

  const auto foreign = folder.path() / "foreign.db";
  std::string other = contentOf(path);
  other[68] = 0, other[69] = 0, other[70] = 0,
  other[71] = 1;  // the application's id in SQLite's header
  std::ofstream(foreign, std::ios::binary) << other;
  CHECK(rejection(foreign).find("another program") != std::string::npos);

  CHECK_THROWS_AS(readProfile(folder.path() / "none.db"), Error);
  CHECK_THROWS_AS(ProfileStore(folder.path() / "none.db", ProfileStore::Mode::read, ""), Error);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "none.db"));
}

namespace {

/// Changes a store behind its back.
void execute(const std::filesystem::path &path, const std::string &text) {
  sqlite3 *database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  char *problem = nullptr;
  const int code = sqlite3_exec(database, text.c_str(), nullptr, nullptr, &problem);
  INFO(text << ": " << (problem ? problem : ""));
  sqlite3_free(problem);
  sqlite3_close(database);
  REQUIRE(code == SQLITE_OK);
}

std::string readRejection(const std::filesystem::path &path) {
  try {
    readProfile(path);
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "";
}

std::filesystem::path storeOf(const TemporaryTestFolder &folder, const std::string &name) {
  const auto path = folder.path() / name;
  ProfileStore store(path, ProfileStore::Mode::create, "h200");
  store.write({measurement("loop 01>01", 1e-6)}, "cold");
  store.write({measurement("loop 01>10", 0, MeasurementStatus::failed)}, "cold");
  return path;
}

}  // namespace

TEST_CASE("measurements of a store pass the checks of measurements of a text") {
  const TemporaryTestFolder folder;
  const auto good = storeOf(folder, "good.db");
  REQUIRE(readRejection(good).empty());
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"UPDATE measurements SET seconds = 0 WHERE status = 0", "0 seconds"},
      {"UPDATE measurements SET seconds = -1e-6 WHERE status = 0", "-1e-06 seconds"},
      {"UPDATE measurements SET seconds = 9e999 WHERE status = 0", "inf seconds"},
      {"UPDATE measurements SET seconds = 'soon' WHERE status = 0", "time 'soon' is no number"},
      {"UPDATE measurements SET seconds = 1e-6 WHERE status = 2", "a failure has none"},
      {"UPDATE measurements SET n = 0 WHERE status = 0", "0 repetitions"},
      {"UPDATE measurements SET n = -5 WHERE status = 0", "number of repetitions '-5'"},
      {"UPDATE measurements SET spread = -0.5", "a spread of -0.5"},
      {"UPDATE measurements SET status = 256", "status '256'"},
      {"UPDATE measurements SET status = -1", "status '-1'"},
      {"UPDATE measurements SET protocol = 9", "protocol 9 is not among"},
      {"UPDATE measurements SET protocol = 4294967297", "protocol '4294967297'"},
      {"UPDATE measurements SET source = 'mine'", "'mine' is no hash of a source"},
      {"UPDATE measurements SET family_version = -1", "family version '-1'"},
      {"UPDATE measurements SET reason = '' WHERE status = 2", "without its reason"},
      {"UPDATE measurements SET configuration = 'lop 01>01' WHERE status = 0", "lop"},
      {"UPDATE measurements SET kernel = 'short'", "'short' is no hash of a kernel"},
      {"INSERT INTO device VALUES ('a100')", "two devices, 'h200' and 'a100'"},
      {"UPDATE kernels SET name = 're' || char(10) || 'lu'", "no line of text"},
      {"UPDATE kernels SET name = 're' || char(27) || '[31mlu'", "no line of text"},
      {"DELETE FROM kernels", "not among those of the store"},
      {"DELETE FROM protocols", "protocol 1 is not among"},
      {"UPDATE protocols SET text = ''", "protocol 1 is no line of text"},
      {"UPDATE protocols SET number = -1", "number '-1'"}};
  for (const auto &[edit, says] : edits) {
    const auto path = folder.path() / "edited.db";
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    execute(path, edit);
    const std::string before = contentOf(path);
    INFO(edit);
    CHECK_THAT(readRejection(path), Catch::Contains("edited.db") && Catch::Contains(says));
    CHECK(contentOf(path) == before);
  }
}

TEST_CASE("a store that lacks a table or a column is bad input, named, and left as it is") {
  const TemporaryTestFolder folder;
  const auto good = storeOf(folder, "good.db");
  for (const auto &[edit, lacks] : std::vector<std::pair<std::string, std::string>>{
           {"DROP TABLE measurements", "no such table: measurements"},
           {"DROP TABLE kernels", "no such table: kernels"},
           {"DROP TABLE protocols", "no such table: protocols"},
           {"DROP TABLE device", "no such table: device"},
           {"ALTER TABLE measurements RENAME COLUMN seconds TO minutes",
            "no such column: seconds"}}) {
    const auto path = folder.path() / "edited.db";
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    execute(path, edit);
    const std::string before = contentOf(path);
    INFO(edit);
    CHECK_THAT(rejection(path), Catch::Contains("edited.db") && Catch::Contains(lacks));
    CHECK_THAT(readRejection(path), Catch::Contains("edited.db") && Catch::Contains(lacks));
    CHECK(contentOf(path) == before);
    CHECK_FALSE(std::filesystem::exists(path.string() + "-wal"));
  }
}

TEST_CASE("a closed store is one file, after writers, readers and writers that were killed") {
  const TemporaryTestFolder folder;
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto path = storeOf(folder, "a.db");
  CHECK(files() == std::vector<std::string>{"a.db"});
  CHECK(readProfile(path).measurementCount() == 2);
  CHECK(files() == std::vector<std::string>{"a.db"});
  {
    ProfileStore first(path, ProfileStore::Mode::create, "h200");
    {
      ProfileStore second(path, ProfileStore::Mode::create, "h200");
      second.write({measurement("loop 10>01", 1e-6)}, "cold");
    }
    first.write({measurement("loop 10>10", 1e-6)}, "cold");
    CHECK(readProfile(path).measurementCount() == 4);
    // What a writer that is killed now would leave.
    for (const char *suffix : {"", "-wal", "-shm"})
      std::filesystem::copy_file(path.string() + suffix,
                                 (folder.path() / "killed.db").string() + suffix);
  }
  CHECK(files() == std::vector<std::string>{"a.db", "killed.db", "killed.db-shm", "killed.db-wal"});
  CHECK(readProfile(folder.path() / "killed.db").measurementCount() == 4);
  CHECK(files() == std::vector<std::string>{"a.db", "killed.db"});
}

TEST_CASE("readers of a store that is written through a log leave no file beside it") {
  const TemporaryTestFolder folder;
  const auto path = storeOf(folder, "a #1%20?.db");
  execute(path, "PRAGMA journal_mode = WAL");
  const std::string before = contentOf(path);
  for (const auto permissions :
       {std::filesystem::perms::owner_all, std::filesystem::perms::owner_read}) {
    std::filesystem::permissions(path, permissions);
    CHECK(readProfile(path).measurementCount() == 2);
    CHECK(contentOf(path) == before);
    const std::filesystem::directory_iterator files(folder.path());
    CHECK(std::distance(begin(files), end(files)) == 1);
  }
}

TEST_CASE("what has no end is no profile and is not read") {
  const TemporaryTestFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::filesystem::path &path : {pipe, std::filesystem::path("/dev/zero")}) {
    CHECK_THAT(readRejection(path),
               Catch::Contains(path.string()) && Catch::Contains("no regular file"));
    CHECK_THAT(rejection(path), Catch::Contains(path.string()));
  }
}

TEST_CASE("a store of an older format is read unchanged, and migrated at the first write") {
  const TemporaryTestFolder folder;
  const auto path = storeOf(folder, "old.db");
  const std::string place = " 64,1:32768_1,64:32768>512,1:262144";
  const std::string old = "product f16 64 x 512 x 512 x 64", now = "gemm f16 64 x 512 x 512 x 64";
  execute(path, fmt::format("ALTER TABLE measurements RENAME TO rows; PRAGMA user_version = 1; "
                            "INSERT INTO kernels VALUES ('{0}', '{1}'); "
                            "INSERT INTO rows VALUES ('{0}', 'hopper-contraction{2} splits=2', 0, "
                            "1e-6, 9, 0.1, 1, '-', 1, '')",
                            profileHash(old), old, place));
  const std::string before = contentOf(path);
  const Profile read = readProfile(path);
  CHECK(contentOf(path) == before);
  CHECK(read.measurementCount() == 3);
  REQUIRE(read.kernels.contains(profileHash(now)));
  const ProfileKernel &kernel = read.kernels.at(profileHash(now));
  CHECK(kernel.name == now);
  CHECK(kernel.measurements.contains("gemm-sm90" + place + " splitK=2"));
  CHECK(ProfileStore(path, ProfileStore::Mode::create, "h200").read() == read);
  CHECK(contentOf(path) != before);
  CHECK(ProfileStore(path, ProfileStore::Mode::create, "h200").read() == read);
  CHECK(readProfile(path) == read);
}
