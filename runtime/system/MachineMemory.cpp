// Limits of memory; see MachineMemory.h.
#include "runtime/system/MachineMemory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace weft::runtime {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// The number at the start of a file; nothing for "max", or where there is none.
std::optional<int64_t> numberIn(const std::filesystem::path &file) {
  std::ifstream stream(file);
  int64_t number = 0;
  return stream >> number && number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> totalIn(const std::filesystem::path &file) {
  std::ifstream stream(file);
  std::string name, unit;
  int64_t kibibytes = 0;
  while (stream >> name >> kibibytes) {
    if (name == "MemTotal:") return kibibytes * 1024;
    std::getline(stream, unit);
  }
  return std::nullopt;
}

/// The limit of the control group of version 2 that the process is in, or of one above it.
int64_t groupLimit(const std::filesystem::path &root) {
  int64_t least = unlimited;
  const auto take = [&](const std::filesystem::path &file) {
    if (const std::optional<int64_t> bytes = numberIn(file)) least = std::min(least, *bytes);
  };
  const std::filesystem::path groups = root / "sys/fs/cgroup";
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const bool isSecond = line.starts_with("0::"),
               isMemory = line.find(":memory:") != std::string::npos;
    if (!isSecond && !isMemory) continue;
    const std::filesystem::path folder = isSecond ? groups : groups / "memory";
    for (std::filesystem::path group =
             std::filesystem::path(line.substr(line.find('/') + 1)).lexically_normal();
         ; group = group.parent_path()) {
      take(folder / group / (isSecond ? "memory.max" : "memory.limit_in_bytes"));
      if (group.empty() || group == group.parent_path()) break;
    }
  }
  take(groups / "memory.max");
  take(groups / "memory/memory.limit_in_bytes");
  return least;
}

}  // namespace

int64_t machineMemoryBytes(const std::filesystem::path &root) {
  int64_t least = std::min(totalIn(root / "proc/meminfo").value_or(unlimited), groupLimit(root));
  rlimit limit{};
  if (root == "/" && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    least = std::min(least, int64_t(limit.rlim_cur));
  return least;
}

}  // namespace weft::runtime
