// The profile store: measurements in one SQLite file, safe for several processes that
// measure at once.
//
// Profiles ship as text (kernel/Profile.h); new measurements go to the store. They are committed in
// batches, so that a killed process loses at most its last batch. A file that is no store, or is
// damaged, is never written to.
#pragma once

#include "kernel/Profile.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

/// One measurement on the way into a store.
struct StoredMeasurement {
  std::string kernel;  ///< hash of the subject
  std::string kernelName;
  std::string configuration;       ///< line
  ProfileMeasurement measurement;  ///< its `protocol` is ignored
};

class ProfileStore {
public:
  enum class Mode {
    read,    ///< the file must be there
    create,  ///< made if there is none
  };
  /// Throws Error(badInput): no such file, not a store (and what it is instead), a store of a newer
  /// weft, damaged, or measured on another device than `device` (empty: any).
  ProfileStore(const std::filesystem::path &path, Mode mode, const std::string &device);
  ~ProfileStore();
  ProfileStore(ProfileStore &&) noexcept;
  ProfileStore &operator=(ProfileStore &&) noexcept;

  const std::string &device() const;
  /// Adds or replaces measurements in one transaction; waits for other writers. Throws
  /// Error(checkFailed) when it cannot be done.
  void write(const std::vector<StoredMeasurement> &measurements, const std::string &protocol);
  /// Everything. Protocols are numbered in the order in which they were first used.
  Profile read() const;
  /// Adds the measurements of a profile as mergeProfile() does; how many were new or replaced.
  size_t merge(const Profile &profile);

  struct Connection;

private:
  std::unique_ptr<Connection> connection;
};

/// Whether the file begins as every SQLite database does.
bool isDatabase(const std::filesystem::path &path);
/// The measurements of a text file or a store. Throws Error(badInput) as the constructor and
/// parseProfile() do.
Profile readProfile(const std::filesystem::path &path);

}  // namespace weft::runtime
