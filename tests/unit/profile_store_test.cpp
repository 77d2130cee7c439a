// The store: round trip with the text form, two writers, and files that are no store or are damaged.
#include "kernel/Error.h"
#include "runtime/ProfileStore.h"
#include "tests/support/TemporaryTestFolder.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace weft;
using namespace weft::runtime;
using weft::test::TemporaryTestFolder;

namespace {

StoredRow row(const std::string &configuration, double seconds, RowStatus status = RowStatus::measured) {
  ProfileRow row{.status = status, .seconds = status == RowStatus::failed ? 0 : seconds, .n = 9, .spread = 0.01, .familyVersion = 1};
  if (status == RowStatus::failed) row.reason = "it failed", row.n = 0, row.spread = 0;
  return {.kernel = "0123456789abcdef", .kernelName = "relu", .configuration = configuration, .row = row};
}

std::string refusal(const std::filesystem::path &path, const std::string &device = "h200") {
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
    store.write({row("loop 01>01", 1.23456e-6), row("loop 10>10", 2e-6, RowStatus::slow)}, "cold, 1980 MHz");
    store.write({row("loop 01>10", 0, RowStatus::failed)}, "cold, 1755 MHz");
    store.write({row("loop 01>01", 3e-6)}, "cold, 1755 MHz");  // measured again
  }
  const Profile profile = readProfile(path);
  CHECK(profile.device == "h200");
  CHECK(profile.protocols.size() == 2);
  REQUIRE(profile.rowCount() == 3);
  CHECK(profile.kernels.begin()->second.rows.at("loop 01>01").seconds == 3e-6);
  CHECK(profile.kernels.begin()->second.rows.at("loop 01>10").reason == "it failed");
  std::ofstream(folder.path() / "a.txt") << printProfile(profile);
  CHECK(readProfile(folder.path() / "a.txt").rowCount() == 3);

  ProfileStore other(folder.path() / "b.db", ProfileStore::Mode::create, "h200");
  CHECK(other.merge(profile) == 3);
  CHECK(other.merge(profile) == 0);
  CHECK(printProfile(other.read()) == printProfile(profile));
}

TEST_CASE("two writers do not lose each other's rows") {
  const TemporaryTestFolder folder;
  const auto path = folder.path() / "a.db";
  ProfileStore first(path, ProfileStore::Mode::create, "h200"), second(path, ProfileStore::Mode::create, "h200");
  for (int i = 0; i < 20; ++i) {
    first.write({row(fmt::format("loop 01>01 threads={}", 2 * i + 1), 1e-6)}, "one");
    second.write({row(fmt::format("loop 01>01 threads={}", 2 * i + 2), 1e-6)}, "two");
  }
  CHECK(first.read().rowCount() == 40);
  CHECK(second.read().protocols.size() == 2);
}

TEST_CASE("what is no store, damaged, or of another device is refused and left as it is") {
  const TemporaryTestFolder folder;
  const auto text = folder.path() / "text.db";
  std::ofstream(text) << "this is no database, but long enough to be one, were it one";
  CHECK(refusal(text).find("no SQLite database") != std::string::npos);
  CHECK(contentOf(text).starts_with("this is no database"));

  const auto path = folder.path() / "a.db";
  {
    ProfileStore store(path, ProfileStore::Mode::create, "h200");
    std::vector<StoredRow> rows;
    for (int i = 0; i < 2000; ++i) rows.push_back(row(fmt::format("loop 01>01 threads={}", i), 1e-6));
    store.write(rows, "cold");
  }
  CHECK(refusal(path).empty());
  CHECK(refusal(path, "a100").find("measured on 'h200'") != std::string::npos);

  std::string bytes = contentOf(path);
  REQUIRE(bytes.size() > 20000);
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = char(0xa5);
  const auto damaged = folder.path() / "damaged.db";
  std::ofstream(damaged, std::ios::binary) << bytes;
  CHECK(refusal(damaged).find("damaged") != std::string::npos);
  CHECK(contentOf(damaged) == bytes);

  const auto foreign = folder.path() / "foreign.db";
  std::string other = contentOf(path);
  other[68] = 0, other[69] = 0, other[70] = 0, other[71] = 1;  // the application's id in SQLite's header
  std::ofstream(foreign, std::ios::binary) << other;
  CHECK(refusal(foreign).find("another program") != std::string::npos);

  CHECK_THROWS_AS(readProfile(folder.path() / "none.db"), Error);
  CHECK_THROWS_AS(ProfileStore(folder.path() / "none.db", ProfileStore::Mode::read, ""), Error);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "none.db"));
}
