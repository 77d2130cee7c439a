// SQLite behind the store. Schema version 2: see `schema`. A store of version 1, whose table of
// measurements and whose words are others (kernel/ProfileMigration.h), is migrated in place by who
// may write it, and while it is read by who may not.
#include "runtime/measure/ProfileStore.h"

#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "kernel/PlainText.h"
#include "kernel/ProfileMigration.h"
#include "runtime/system/Files.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

namespace weft::runtime {
namespace {

constexpr int applicationId = 0x77656674;  // "weft"
constexpr int schemaVersion = 2, schemaOfFormat2 = 1;
constexpr int busyMilliseconds = 30000;

constexpr const char *schema = R"(
CREATE TABLE device (name TEXT NOT NULL);
CREATE TABLE protocols (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE kernels (hash TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measurements (
  kernel TEXT NOT NULL REFERENCES kernels, configuration TEXT NOT NULL,
  status INTEGER NOT NULL, seconds REAL NOT NULL, n INTEGER NOT NULL, spread REAL NOT NULL,
  protocol INTEGER NOT NULL REFERENCES protocols, source TEXT NOT NULL,
      family_version INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (kernel, configuration)) WITHOUT ROWID;
)";

/// What a result code means for the person who named the file.
Error failure(const std::filesystem::path &path, int code, const std::string &what) {
  const std::string name = path.string();
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return Error::badInput("profile store '{}' is no SQLite database; nothing was written to it",
                             name);
    case SQLITE_CORRUPT:
      return Error::badInput(
          "profile store '{}' is damaged ({}); nothing was written to it. `sqlite3 {} .recover` "
          "may save its measurements",
          name, what, name);
    case SQLITE_CANTOPEN:
      return Error::badInput("profile store '{}' cannot be opened: {}", name, what);
    case SQLITE_READONLY:
      return Error::badInput("profile store '{}' cannot be written: {}", name, what);
    case SQLITE_FULL:
      return Error::checkFailed(
          "profile store '{}': the disk is full; what was committed before is kept", name);
    case SQLITE_BUSY:
      return Error::checkFailed("profile store '{}' was locked by another process for {} s", name,
                                busyMilliseconds / 1000);
    default: return Error::checkFailed("profile store '{}': {}", name, what);
  }
}

}  // namespace

struct ProfileStore::Connection {
  /// `name`: the path, or a URI of it with its options.
  Connection(const std::filesystem::path &path, const std::string &name, int flags) : path(path) {
    const int code = sqlite3_open_v2(name.c_str(), &database, flags, nullptr);
    if (code != SQLITE_OK) {
      const std::string what = database ? sqlite3_errmsg(database) : sqlite3_errstr(code);
      sqlite3_close(database);
      throw failure(path, code, what);
    }
    sqlite3_busy_timeout(database, busyMilliseconds);
  }
  ~Connection() {
    if (isWriter) leaveOneFile();
    sqlite3_close(database);
  }
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  void check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
      throw failure(path, code, sqlite3_errmsg(database));
  }
  /// Without other writers the log is taken in and goes, and who reads later makes none anew. With
  /// others it is theirs.
  void leaveOneFile() const {
    sqlite3_busy_timeout(database, 0);
    sqlite3_exec(database, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
  }
  void execute(const char *text) const {
    check(sqlite3_exec(database, text, nullptr, nullptr, nullptr));
  }

  std::filesystem::path path;
  sqlite3 *database = nullptr;
  std::string device;
  bool isWriter = false;
  bool isOfFormat2 = false;  ///< read alone: its words are the old ones
};

namespace {

/// A prepared statement: bind in order, step, read columns.
class Statement {
public:
  Statement(const ProfileStore::Connection &connection, const char *text) : connection(connection) {
    connection.check(sqlite3_prepare_v2(connection.database, text, -1, &statement, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement); }
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  Statement &bind(const std::string &text) {
    connection.check(
        sqlite3_bind_text(statement, ++bound, text.data(), int(text.size()), SQLITE_TRANSIENT));
    return *this;
  }
  Statement &bind(int64_t number) {
    connection.check(sqlite3_bind_int64(statement, ++bound, number));
    return *this;
  }
  Statement &bind(double number) {
    connection.check(sqlite3_bind_double(statement, ++bound, number));
    return *this;
  }
  /// Whether there is a measurement.
  bool step() {
    const int code = sqlite3_step(statement);
    connection.check(code);
    return code == SQLITE_ROW;
  }
  void run() {
    step();
    sqlite3_reset(statement);
    bound = 0;
  }
  std::string text(int column) const {
    const auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
    return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement, column))) : "";
  }
  bool isInteger(int column) const {
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER;
  }
  bool isNumber(int column) const {
    return isInteger(column) || sqlite3_column_type(statement, column) == SQLITE_FLOAT;
  }
  bool isNull(int column) const { return sqlite3_column_type(statement, column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(statement, column); }
  double number(int column) const { return sqlite3_column_double(statement, column); }

private:
  const ProfileStore::Connection &connection;
  sqlite3_stmt *statement = nullptr;
  int bound = 0;
};

/// Whether the head of a store says that it is written through a log, which readers then open too.
bool usesLog(const std::filesystem::path &path) {
  constexpr size_t versionAt = 18;  // of the file format for writers: 2 with a log
  char head[versionAt + 1] = {};
  return std::ifstream(path, std::ios::binary).read(head, sizeof(head)) && head[versionAt] == 2;
}

/// A connection that leaves no file beside the store. One that may write takes the log in when it
/// is closed last, even if it only reads; one that may not would leave it.
std::unique_ptr<ProfileStore::Connection> openToRead(const std::filesystem::path &path) {
  using Connection = ProfileStore::Connection;
  std::error_code ignored;
  const bool hasLog = std::filesystem::exists(path.string() + "-wal", ignored);
  if (!hasLog && !usesLog(path))
    return std::make_unique<Connection>(path, path.string(), SQLITE_OPEN_READONLY);
  if (hasLog || access(path.c_str(), W_OK) == 0)
    return std::make_unique<Connection>(path, path.string(), SQLITE_OPEN_READWRITE);
  std::string uri = "file:";  // of a file without a log that nobody may write
  for (const char c : path.string())
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", int(c)) : std::string(1, c);
  return std::make_unique<Connection>(path, uri + "?immutable=1",
                                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

int64_t pragma(const ProfileStore::Connection &connection, const char *text) {
  Statement statement(connection, text);
  return statement.step() ? statement.integer(0) : 0;
}

/// Rolled back unless committed.
class Transaction {
public:
  explicit Transaction(const ProfileStore::Connection &connection) : connection(connection) {
    connection.execute("BEGIN IMMEDIATE");
  }
  ~Transaction() {
    if (!committed) sqlite3_exec(connection.database, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() {
    connection.execute("COMMIT");
    committed = true;
  }

private:
  const ProfileStore::Connection &connection;
  bool committed = false;
};

void createSchema(const ProfileStore::Connection &connection, const std::string &device) {
  if (device.empty())
    throw Error::badInput("a new profile store '{}' needs the device it is for",
                          connection.path.string());
  Transaction transaction(connection);
  // Another process may have been first.
  if (pragma(connection, "PRAGMA application_id") == applicationId) return;
  connection.execute(schema);
  Statement(connection, "INSERT INTO device VALUES (?)").bind(device).run();
  connection.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                 applicationId, schemaVersion)
                         .c_str());
  transaction.commit();
}

/// Every table with the columns that are read: a file without them is no store of ours, whatever
/// its head says.
void checkTables(const ProfileStore::Connection &connection, const char *measurements) {
  for (const std::string &asked :
       {std::string("SELECT name FROM device"), std::string("SELECT number, text FROM protocols"),
        std::string("SELECT hash, name FROM kernels"),
        fmt::format("SELECT kernel, configuration, status, seconds, n, spread, protocol, source, "
                    "family_version, reason FROM {}",
                    measurements)}) {
    sqlite3_stmt *statement = nullptr;
    const int code =
        sqlite3_prepare_v2(connection.database, asked.c_str(), -1, &statement, nullptr);
    sqlite3_finalize(statement);
    if (code == SQLITE_ERROR)
      throw Error::badInput(
          "profile store '{}' lacks what every store has ({}); nothing was written to it",
          connection.path.string(), sqlite3_errmsg(connection.database));
    connection.check(code);
  }
}

const char *tableOf(int64_t version) {
  return version == schemaOfFormat2 ? "rows" : "measurements";
}

void checkFormat(const ProfileStore::Connection &connection) {
  const std::string name = connection.path.string();
  const int64_t id = pragma(connection, "PRAGMA application_id"),
                version = pragma(connection, "PRAGMA user_version");
  if (id != applicationId)
    throw Error::badInput(
        "'{}' is a database of another program, no profile store; nothing was written to it", name);
  if (version != schemaVersion && version != schemaOfFormat2)
    throw Error::badInput("profile store '{}' has schema version {}; this weft reads version {}",
                          name, version, schemaVersion);
  Statement integrity(connection, "PRAGMA quick_check(1)");
  if (integrity.step() && integrity.text(0) != "ok")
    throw failure(connection.path, SQLITE_CORRUPT, integrity.text(0));
  checkTables(connection, tableOf(version));
}

/// From version 1, in one transaction.
void migrate(const ProfileStore::Connection &connection) {
  Transaction transaction(connection);
  // Another process may have been first.
  if (pragma(connection, "PRAGMA user_version") != schemaOfFormat2) return;
  connection.execute("ALTER TABLE rows RENAME TO measurements");
  struct Key {
    std::string hash, configuration;
    auto operator<=>(const Key &) const = default;
  };
  std::map<std::string, MigratedSubject> subjects;  // by the old hash, where it changes
  for (Statement kernels(connection, "SELECT hash, name FROM kernels"); kernels.step();) {
    const MigratedSubject subject = migratedSubject(kernels.text(0), kernels.text(1));
    if (subject.name != kernels.text(1)) subjects[kernels.text(0)] = subject;
  }
  std::vector<std::pair<Key, Key>> keys;
  for (Statement rows(connection, "SELECT kernel, configuration FROM measurements"); rows.step();) {
    const Key old = {rows.text(0), rows.text(1)};
    const auto subject = subjects.find(old.hash);
    const Key now = {subject == subjects.end() ? old.hash : subject->second.hash,
                     migratedLine(old.configuration)};
    if (now != old) keys.emplace_back(old, now);
  }
  for (const auto &[hash, subject] : subjects) {
    Statement(connection, "DELETE FROM kernels WHERE hash = ?").bind(hash).run();
    Statement(connection, "INSERT OR REPLACE INTO kernels VALUES (?, ?)")
        .bind(subject.hash)
        .bind(subject.name)
        .run();
  }
  Statement update(connection,
                   "UPDATE OR REPLACE measurements SET kernel = ?, configuration = ? WHERE kernel "
                   "= ? AND configuration = ?");
  for (const auto &[old, now] : keys)
    update.bind(now.hash).bind(now.configuration).bind(old.hash).bind(old.configuration).run();
  connection.execute(fmt::format("PRAGMA user_version = {}", schemaVersion).c_str());
  transaction.commit();
}

std::string deviceOf(const ProfileStore::Connection &connection) {
  Statement names(connection, "SELECT name FROM device");
  if (!names.step()) throw failure(connection.path, SQLITE_CORRUPT, "it names no device");
  const std::string device = names.text(0);
  if (names.step())
    throw Error::badInput("profile store '{}' names two devices, '{}' and '{}', and is of one",
                          connection.path.string(), printableLine(device),
                          printableLine(names.text(0)));
  return device;
}

/// An integer of a measurement, rejected where it is none or does not fit: a conversion would make
/// another number of it.
int64_t integerFrom(const Statement &statement, int column, const char *name, int64_t least,
                    int64_t most) {
  const int64_t value = statement.integer(column);
  if (!statement.isInteger(column) || value < least || value > most)
    throw Error::badInput("{} '{}' is no number from {} to {}", name, statement.text(column), least,
                          most);
  return value;
}

double numberFrom(const Statement &statement, int column, const char *name) {
  if (!statement.isNumber(column))
    throw Error::badInput("{} '{}' is no number", name, statement.text(column));
  return statement.number(column);
}

/// Names stand in one line of the text form, and in tables.
void checkName(const std::string &name) {
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    throw Error::badInput("the name of its kernel is no line of text");
}

ProfileMeasurement measurementFrom(const Statement &statement, int column) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  return {.status = MeasurementStatus(integerFrom(statement, column, "status",
                                                  int64_t(MeasurementStatus::measured),
                                                  int64_t(MeasurementStatus::failed))),
          .seconds = numberFrom(statement, column + 1, "time"),
          .n = integerFrom(statement, column + 2, "number of repetitions", 0,
                           std::numeric_limits<int64_t>::max()),
          .spread = numberFrom(statement, column + 3, "spread"),
          .protocol = int(integerFrom(statement, column + 4, "protocol", 1, most)),
          .source = statement.text(column + 5),
          .familyVersion = int(integerFrom(statement, column + 6, "family version", 0, most)),
          .reason = statement.text(column + 7)};
}

}  // namespace

ProfileStore::ProfileStore(const std::filesystem::path &path, Mode mode,
                           const std::string &device) {
  std::error_code ignored;
  const bool isThere =
      std::filesystem::exists(path, ignored) && std::filesystem::file_size(path, ignored) > 0;
  if (!isThere && mode == Mode::read)
    throw Error::badInput("profile store '{}' does not exist or is empty", path.string());
  if (isThere && !isDatabase(path)) throw failure(path, SQLITE_NOTADB, "");
  connection = mode == Mode::read
                   ? openToRead(path)
                   : std::make_unique<Connection>(path, path.string(),
                                                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!isThere) createSchema(*connection, device);
  checkFormat(*connection);
  connection->device = deviceOf(*connection);
  if (!device.empty() && connection->device != device)
    throw Error::badInput("profile store '{}' was measured on '{}', not on '{}'", path.string(),
                          connection->device, device);
  connection->isOfFormat2 = pragma(*connection, "PRAGMA user_version") == schemaOfFormat2;
  if (mode == Mode::create) {
    if (connection->isOfFormat2) migrate(*connection);
    connection->isOfFormat2 = false;
    connection->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    connection->isWriter = true;
    deviceOf(*connection);  // opens the log: another writer that ends must not turn it off
  }
}

ProfileStore::~ProfileStore() = default;
ProfileStore::ProfileStore(ProfileStore &&) noexcept = default;
ProfileStore &ProfileStore::operator=(ProfileStore &&) noexcept = default;

const std::string &ProfileStore::device() const { return connection->device; }

void ProfileStore::write(const std::vector<StoredMeasurement> &measurements,
                         const std::string &protocol) {
  if (measurements.empty()) return;
  Transaction transaction(*connection);
  Statement(*connection, "INSERT OR IGNORE INTO protocols (text) VALUES (?)").bind(protocol).run();
  Statement number(*connection, "SELECT number FROM protocols WHERE text = ?");
  number.bind(protocol).step();
  const int64_t protocolNumber = number.integer(0);
  Statement kernel(*connection, "INSERT OR IGNORE INTO kernels VALUES (?, ?)");
  Statement measurement(
      *connection, "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const StoredMeasurement &stored : measurements) {
    kernel.bind(stored.kernel).bind(stored.kernelName).run();
    measurement.bind(stored.kernel)
        .bind(stored.configuration)
        .bind(int64_t(stored.measurement.status))
        .bind(quantized(stored.measurement.seconds))
        .bind(stored.measurement.n)
        .bind(stored.measurement.spread)
        .bind(protocolNumber)
        .bind(stored.measurement.source)
        .bind(int64_t(stored.measurement.familyVersion))
        .bind(stored.measurement.reason)
        .run();
  }
  transaction.commit();
}

Profile ProfileStore::read() const {
  Profile profile{.device = connection->device, .protocols = {}, .kernels = {}};
  Statement protocols(*connection, "SELECT number, text FROM protocols ORDER BY number");
  const std::string store = connection->path.string();
  while (protocols.step()) {
    try {
      const int64_t number =
          integerFrom(protocols, 0, "number", 1, std::numeric_limits<int>::max());
      checkProtocol(number, protocols.text(1));
      profile.protocols[int(number)] = protocols.text(1);
    } catch (const Error &error) {
      throw Error::badInput("profile store '{}': protocols: {}", store, error.what());
    }
  }
  const std::string query = fmt::format(
      "SELECT one.kernel, name, configuration, status, seconds, n, spread, protocol, source, "
      "family_version, reason FROM {0} AS one LEFT JOIN kernels ON kernels.hash = one.kernel "
      "ORDER BY one.kernel, configuration",
      tableOf(connection->isOfFormat2 ? schemaOfFormat2 : schemaVersion));
  Statement measurements(*connection, query.c_str());
  while (measurements.step()) {
    const std::string hash = measurements.text(0), line = measurements.text(2);
    const std::string configuration = connection->isOfFormat2 ? migratedLine(line) : line;
    try {
      checkKernelHash(hash);
      if (measurements.isNull(1))
        throw Error::badInput("its kernel is not among those of the store");
      checkName(measurements.text(1));
      const ProfileMeasurement measurement = measurementFrom(measurements, 3);
      checkMeasurement(configuration, measurement, profile.protocols);
      const MigratedSubject subject =
          connection->isOfFormat2 ? migratedSubject(hash, measurements.text(1))
                                  : MigratedSubject{.hash = hash, .name = measurements.text(1)};
      ProfileKernel &kernel = profile.kernels[subject.hash];
      kernel.name = subject.name;
      kernel.measurements.emplace(configuration, measurement);
    } catch (const Error &error) {
      throw Error::badInput(
          "profile store '{}': kernel {} ({}): measurement '{}': {}; delete it: sqlite3 {} "
          "\"DELETE FROM {} WHERE configuration = '{}'\"",
          store, printableLine(measurements.text(1)), hash, line, error.what(), store,
          tableOf(connection->isOfFormat2 ? schemaOfFormat2 : schemaVersion), line);
    }
  }
  return profile;
}

size_t ProfileStore::merge(const Profile &profile) {
  Profile merged = read();
  const Profile before = merged;
  mergeProfile(merged, profile);
  std::map<int, std::vector<StoredMeasurement>> byProtocol;
  size_t changed = 0;
  for (const auto &[hash, kernel] : merged.kernels)
    for (const auto &[configuration, measurement] : kernel.measurements) {
      const auto held = before.kernels.find(hash);
      if (held != before.kernels.end())
        if (const auto old = held->second.measurements.find(configuration);
            old != held->second.measurements.end() && old->second == measurement)
          continue;
      ++changed;
      byProtocol[measurement.protocol].push_back({.kernel = hash,
                                                  .kernelName = kernel.name,
                                                  .configuration = configuration,
                                                  .measurement = measurement});
    }
  for (const auto &[protocol, measurements] : byProtocol)
    write(measurements, merged.protocols.at(protocol));
  return changed;
}

bool isDatabase(const std::filesystem::path &path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // reading may never end
  constexpr char magic[] = "SQLite format 3";
  char head[sizeof(magic)] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof(head));
  return std::memcmp(head, magic, sizeof(magic)) == 0;
}

Profile readProfile(const std::filesystem::path &path) {
  if (isDatabase(path)) return ProfileStore(path, ProfileStore::Mode::read, "").read();
  std::string text;
  try {
    text = readFile(path);
  } catch (const std::system_error &error) {
    throw Error::badInput("profile '{}' cannot be read: {}", path.string(), error.code().message());
  }
  return parseProfile(text, path.string());
}

}  // namespace weft::runtime
