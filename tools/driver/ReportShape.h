// The types of the members of report.json that commands read: a report that someone wrote, or that
// was damaged, is rejected with its place before a command looks into it. No MLIR.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

/// Throws Error(badInput) naming `where` and the member, what it must be, and what it is. Members
/// of the report itself may be absent.
void checkReport(const nlohmann::json &report, const std::string &where);

/// Runs what reads the report beyond that. A member that is missing or of another type is
/// Error(badInput) that names `where`.
template <typename Read>
auto readingReport(const std::string &where, Read &&read);

[[noreturn]] void rejectReport(const std::string &where,
                               const nlohmann::json::exception &exception);

template <typename Read>
auto readingReport(const std::string &where, Read &&read) {
  try {
    return read();
  } catch (const nlohmann::json::exception &exception) {
    rejectReport(where, exception);
  }
}

}  // namespace weft::driver
