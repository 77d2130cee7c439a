// The memory that a process may take is the least of what its machine, its control group and its
// own limit allow.
#include "kernel/SearchMemory.h"
#include "runtime/system/MachineMemory.h"

#include <catch2/catch.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>

using namespace weft;
namespace fs = std::filesystem;

namespace {

/// A root of files as the kernel shows them.
class Root {
public:
  Root() : path(fs::temp_directory_path() / ("weft-machine-memory-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Root() { fs::remove_all(path); }
  void write(const std::string &file, const std::string &text) const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  const fs::path path;
};

}  // namespace

TEST_CASE("the least of the limits that are known counts") {
  const Root root;
  root.write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:   10 kB\n");
  CHECK(runtime::machineMemoryBytes(root.path) == 1'024'000);
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  CHECK(runtime::machineMemoryBytes(root.path) == 1'024'000);
  root.write("sys/fs/cgroup/outer/memory.max", "500000\n");  // of a group above its own
  CHECK(runtime::machineMemoryBytes(root.path) == 500'000);
  root.write("sys/fs/cgroup/outer/inner/memory.max", "400000\n");
  CHECK(runtime::machineMemoryBytes(root.path) == 400'000);
  root.write("proc/self/cgroup", "5:memory:/one\n");
  root.write("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "300000\n");  // version 1
  CHECK(runtime::machineMemoryBytes(root.path) == 300'000);
  CHECK(runtime::machineMemoryBytes() > 0);
}

TEST_CASE("shares of the search's memory fit into it, and shrink with it") {
  for (const int64_t bytes : {int64_t(1'000'000), int64_t(100'000'000), int64_t(10'000'000'000)})
    for (const size_t variants : {1, 8, 100}) {
      const SearchMemory memory(bytes), half(bytes / 2);
      CHECK(memory.bytesOfRecords(variants) * int64_t(variants) +
                memory.bytesOfSearch(variants) * int64_t(std::min<size_t>(variants, 8)) <=
            bytes);
      CHECK(half.bytesOfSearch(variants) <= memory.bytesOfSearch(variants));
      CHECK(half.mostCandidates(variants) <= memory.mostCandidates(variants));
      CHECK(half.mostVariants(100) <= memory.mostVariants(100));
      CHECK(memory.mostVariants(1000) >= 1);
      CHECK(memory.mostVariants(1000) <= memory.mostVariants(10));
    }
  CHECK_FALSE(SearchMemory().isLimited());
}
