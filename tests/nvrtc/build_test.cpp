// build(): good text, bad text, crashes, timeouts, the cache, and two builders at once.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::runtime;
using weft::test::ScopedVariable;
using weft::test::TemporaryTestFolder;
namespace fs = std::filesystem;

namespace {

/// Adds a constant; different constants give different cubins.
BuildRequest addition(int constant, const std::string &architecture = "sm_80") {
  return {
      .name = fmt::format("add{}", constant),
      .text = fmt::format(
          "extern \"C\" __global__ void add(float *x) {{ x[threadIdx.x] += {}.f; }}\n", constant),
      .entry = "add",
      .architecture = architecture,
      .extraFlags = {}};
}

/// stmatrix to a constant shared-memory address: NVRTC 13.0 dies of it.
BuildRequest crashing() {
  return {.name = "crashing",
          .text =
              "extern \"C\" __global__ void crash(unsigned *x) {\n"
              "  asm volatile(\"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};\" :: "
              "\"r\"(0), \"r\"(x[0]));\n"
              "}\n",
          .entry = "crash",
          .architecture = "sm_90a",
          .extraFlags = {}};
}

/// Accumulators change between WGMMAs that nothing waits for: ptxas runs one after the other.
BuildRequest serialized() {
  return {.name = "serialized",
          .text = R"(extern "C" __global__ void serialized(float *x, unsigned long long operand) {
  float a = x[0], b = x[1], c = x[2], d = x[3];
#define WGMMA                                                                              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, " \
               "%4, 1, 1, 1, 0, 0;"                                                        \
               : "+f"(a), "+f"(b), "+f"(c), "+f"(d)                                        \
               : "l"(operand));
  asm volatile("wgmma.fence.sync.aligned;");
  WGMMA a *= 2;
  WGMMA asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
  x[0] = a, x[1] = b, x[2] = c, x[3] = d;
})",
          .entry = "serialized",
          .architecture = "sm_90a",
          .extraFlags = {}};
}

/// Compiles for minutes: the front end must evaluate a long constant expression.
BuildRequest endless() {
  return {.name = "endless",
          .text =
              "constexpr unsigned spin(unsigned n) { unsigned s = 0; for (unsigned i = 0; i < n; "
              "++i) s += i * s + 1; "
              "return s; }\n"
              "template <unsigned n> struct Chain { static constexpr unsigned value = spin(900000 "
              "+ n) + "
              "Chain<n - 1>::value; };\n"
              "template <> struct Chain<0> { static constexpr unsigned value = 0; };\n"
              "extern \"C\" __global__ void endless(unsigned *x) { x[0] = Chain<190>::value; }\n",
          .entry = "endless",
          .architecture = "sm_80",
          .extraFlags = {}};
}

BuildOptions withoutCache() {
  BuildOptions options;
  options.workers = 2;
  options.useCache = false;
  return options;
}

fs::path onlyEntry(const fs::path &cache) {
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(cache))
    if (entry.path().filename() == "kernel.cubin") return entry.path().parent_path();
  throw std::runtime_error("the cache is empty");
}

}  // namespace

TEST_CASE("kernels are built for every target, with registers and spills recorded") {
  std::vector<BuildRequest> requests;
  for (const char *architecture : {"sm_80", "sm_86", "sm_89", "sm_90a"})
    requests.push_back(addition(1, architecture));
  const std::vector<BuildResult> results = build(requests, withoutCache());
  REQUIRE(results.size() == 4);
  for (size_t i = 0; i < results.size(); ++i) {
    INFO(requests[i].architecture << ": " << results[i].error);
    CHECK(results[i].error.empty());
    CHECK(results[i].cubin.substr(0, 4) ==
          "\x7f"
          "ELF");
    CHECK(results[i].registers > 0);
    CHECK(results[i].spillBytes == 0);
    CHECK(results[i].staticSharedBytes == 0);
    for (size_t j = 0; j < i; ++j) CHECK(results[i].key != results[j].key);
  }
}

TEST_CASE("spills and static shared memory are seen") {
  const BuildRequest request{
      .name = "spilling",
      .text =
          "extern \"C\" __global__ void __launch_bounds__(1024) spill(float *x) {\n"
          "  __shared__ float tile[256];\n"
          "  float v[128];\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < 128; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
          "  tile[threadIdx.x % 256] = v[3]; __syncthreads();\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < 128; ++i) x[i * 1024 + threadIdx.x] = v[i] * v[127 - i] + "
          "tile[0];\n"
          "}\n",
      .entry = "spill",
      .architecture = "sm_80",
      .extraFlags = {}};
  const BuildResult result = build({request}, withoutCache()).front();
  REQUIRE(result.error.empty());
  CHECK(result.spillBytes > 0);
  CHECK(result.staticSharedBytes == 1024);
}

TEST_CASE("headers are found by name, and only those included enter the key") {
  BuildRequest request{
      .name = "header",
      .text = "#include \"weft/one.cuh\"\nextern \"C\" __global__ void k(int *x) { *x = two(); }\n",
      .entry = "k",
      .architecture = "sm_80",
      .extraFlags = {}};
  BuildOptions options = withoutCache();
  options.headers = {{"weft/one.cuh", "#include \"weft/two.cuh\"\n"},
                     {"weft/two.cuh", "__device__ inline int two() { return 2; }\n"},
                     {"weft/three.cuh", "this is never read\n"}};
  const BuildResult before = build({request}, options).front();
  CHECK(before.error.empty());
  options.headers["weft/three.cuh"] = "nor is this\n";
  CHECK(build({request}, options).front().key == before.key);
  options.headers["weft/two.cuh"] = "__device__ inline int two() { return 1 + 1; }\n";
  CHECK(build({request}, options).front().key != before.key);
}

TEST_CASE("bad text fails its own kernel, with NVRTC's words") {
  BuildRequest bad = addition(3);
  bad.text = "extern \"C\" __global__ void add(float *x) {\n  x[0] = nowhere;\n}\n";
  const std::vector<BuildResult> results = build({addition(2), bad, addition(4)}, withoutCache());
  CHECK(results[0].error.empty());
  CHECK_THAT(results[1].error,
             Catch::Contains("kernel.cu(2): error") && Catch::Contains("nowhere"));
  CHECK(results[1].cubin.empty());
  CHECK(results[2].error.empty());
}

TEST_CASE("an unknown architecture is an error of NVRTC, not of the worker") {
  const BuildResult result = build({addition(1, "sm_12345")}, withoutCache()).front();
  CHECK_THAT(result.error, Catch::Contains("gpu-architecture"));
}

TEST_CASE("a crash of NVRTC fails one kernel and no other") {
  if (!fs::path(findNvrtc().library).empty() && findNvrtc().version != "13.0")
    WARN("the crash was seen with NVRTC 13.0");
  std::vector<BuildRequest> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(i % 3 == 1 ? crashing() : addition(i));
  requests[4].text += "// another text, so that it is another job\n";
  const std::vector<BuildResult> results = build(requests, withoutCache());
  REQUIRE(results.size() == requests.size());
  for (size_t i = 0; i < results.size(); ++i) {
    INFO(requests[i].name << ": " << results[i].error);
    if (i % 3 == 1) CHECK_THAT(results[i].error, Catch::StartsWith("worker crashed (signal 11"));
    else CHECK(results[i].error.empty());
  }
  CHECK_THAT(results[1].log, Catch::Contains("crashing"));
}

TEST_CASE("a kernel that takes too long is stopped, and the others are built") {
  BuildOptions options = withoutCache();
  options.timeoutSeconds = 2;
  const std::vector<BuildResult> results = build({endless(), addition(1), addition(2)}, options);
  CHECK(results[0].error == "timed out after 2 s");
  CHECK(results[1].error.empty());
  CHECK(results[2].error.empty());
}

TEST_CASE("a session keeps its workers from lot to lot, and replaces those that are lost") {
  BuildOptions options = withoutCache();
  options.timeoutSeconds = 2;
  BuildSession session(options);
  for (int lot = 0; lot < 3; ++lot)
    for (const BuildResult &result :
         nonEmpty(session.build({addition(3 * lot), addition(3 * lot + 1), addition(3 * lot + 2)})))
      CHECK(result.error.empty());
  CHECK(session.workersStarted() == 2);
  const std::vector<BuildResult> mixed = session.build({endless(), addition(9)});
  CHECK(mixed[0].error == "timed out after 2 s");
  CHECK(mixed[1].error.empty());
  for (const BuildResult &result :
       nonEmpty(session.build({addition(1), addition(2), addition(10), addition(11)})))
    CHECK(result.error.empty());
  CHECK(session.workersStarted() == 3);
}

TEST_CASE("a cancelled lot ends the session's workers; the next lot has new ones") {
  std::atomic<bool> cancelled = false;
  BuildOptions options = withoutCache();
  options.cancelled = &cancelled;
  BuildSession session(options);
  CHECK(session.build({addition(1)})[0].error.empty());
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancelled = true;
  });
  CHECK(session.build({endless()})[0].error == cancelledError);
  later.join();
  cancelled = false;
  CHECK(session.build({addition(2)})[0].error.empty());
  CHECK(session.workersStarted() == 2);
}

TEST_CASE("an executable that is no worker is named as such") {
  BuildOptions options = withoutCache();
  options.workerExecutable = "/bin/false";
  CHECK_THAT(build({addition(1)}, options).front().error, Catch::Contains("worker did not start"));
  options.workerExecutable = "/nowhere/weft";
  CHECK_THROWS_WITH(build({addition(1)}, options), Catch::Contains("/nowhere/weft"));
}

TEST_CASE("progress counts every request once") {
  BuildOptions options = withoutCache();
  std::vector<size_t> seen;
  options.progress = [&](size_t done, size_t total, const std::string &) {
    CHECK(total == 3);
    seen.push_back(done);
  };
  build({addition(1), addition(2), addition(1)}, options);
  CHECK(seen == std::vector<size_t>{1, 2, 3});
}

TEST_CASE("the second build comes from the cache with the same content") {
  const TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", (folder / "cache").string());
  const std::vector<BuildRequest> requests{addition(1), addition(2, "sm_90a")};
  const std::vector<BuildResult> first = build(requests, {}), second = build(requests, {});
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(first[i].error.empty());
    CHECK_FALSE(first[i].fromCache);
    CHECK(second[i].fromCache);
    CHECK((first[i].seconds > 0 && second[i].seconds == 0));
    CHECK(second[i].cubin == first[i].cubin);
    CHECK(second[i].registers == first[i].registers);
    CHECK(second[i].log == first[i].log);
  }
  CHECK(cacheStatistics().entries == 2);
  CHECK(cacheVerify().empty());
  CHECK(readFile(onlyEntry(folder / "cache") / "kernel.cu").find("__global__") !=
        std::string::npos);
}

TEST_CASE("serialized WGMMAs are built and said, from the cache too") {
  const TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", (folder / "cache").string());
  for (const bool fromCache : {false, true}) {
    const BuildResult result = build({serialized()}, {}).front();
    INFO(result.log);
    CHECK(result.fromCache == fromCache);
    CHECK(result.error.empty());
    CHECK_FALSE(result.cubin.empty());
    CHECK_THAT(result.warning, Catch::Contains("serialized"));
    CHECK(result.failure() == result.warning);
  }
  CHECK(build({addition(1)}, {}).front().failure().empty());
}

TEST_CASE("a damaged entry is never used, and is built again") {
  const TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", (folder / "cache").string());
  const BuildResult first = build({addition(1)}, {}).front();
  const fs::path entry = onlyEntry(folder / "cache");
  const std::string file = GENERATE("kernel.cubin", "kernel.cu", "meta.json");
  const bool missing = GENERATE(false, true);
  if (missing) fs::remove(entry / file);
  else std::ofstream(entry / file, std::ios::app) << "x";
  CHECK(cacheVerify().size() == 1);
  std::vector<std::string> notes;
  BuildOptions options;
  options.note = [&](const std::string &text) { notes.push_back(text); };
  const BuildResult second = build({addition(1)}, options).front();
  CHECK_FALSE(second.fromCache);
  CHECK(second.cubin == first.cubin);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes.front(), Catch::Contains("damaged"));
  CHECK(cacheVerify().empty());
  CHECK(build({addition(1)}, {}).front().fromCache);
}

TEST_CASE("a cache that cannot be written is noted once, and the build goes on") {
  const TemporaryTestFolder folder;
  writeFile(folder / "file", "");
  const std::string place = GENERATE(as<std::string>(), "below a file", "proc");
  const ScopedVariable cache(
      "WEFT_CACHE_DIR", place == "proc" ? "/proc/weft" : (folder / "file").string() + "/cache");
  std::vector<std::string> notes;
  BuildOptions options;
  options.note = [&](const std::string &text) { notes.push_back(text); };
  const std::vector<BuildResult> results = build({addition(1), addition(2)}, options);
  CHECK(results[0].error.empty());
  CHECK(results[1].error.empty());
  CHECK(notes.size() == 1);
}

TEST_CASE("two processes that build into one cache both succeed, and leave whole entries only") {
  const TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", (folder / "cache").string());
  std::vector<BuildRequest> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(addition(i));
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      bool built = true;
      for (const BuildResult &result : build(requests, {})) built = built && result.error.empty();
      _exit(built ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(cacheStatistics().entries == 12);
  CHECK(cacheVerify().empty());
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder / "cache"))
    CHECK(entry.path().filename().string().front() != '.');
}

TEST_CASE("a build that is killed leaves a cache that works") {
  const TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", (folder / "cache").string());
  std::vector<BuildRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(addition(i));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    build(requests, {});
    _exit(0);
  }
  for (int i = 0; i < 200 && cacheStatistics().entries == 0; ++i) usleep(20000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(cacheStatistics().entries > 0);
  CHECK(cacheVerify().empty());
  for (const BuildResult &result : nonEmpty(build(requests, {}))) CHECK(result.error.empty());
  cacheCollect(int64_t(1) << 40);
  CHECK(cacheStatistics().entries == 40);
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder / "cache"))
    CHECK(entry.path().filename().string().front() != '.');
}

TEST_CASE("PTX is kept when asked for") {
  BuildOptions options = withoutCache();
  CHECK(build({addition(1)}, options).front().ptx.empty());
  options.keepPtx = true;
  CHECK_THAT(build({addition(1)}, options).front().ptx, Catch::Contains(".target sm_80"));
}

TEST_CASE("the fields of a key tell what changed") {
  const auto fields = cacheKeyFields(addition(1), {}),
             other = cacheKeyFields(addition(1, "sm_90a"), {});
  CHECK(fields.at("text") == other.at("text"));
  CHECK(fields.at("nvrtc") == other.at("nvrtc"));
  CHECK(fields.at("architecture") == "sm_80");
  CHECK(other.at("architecture") == "sm_90a");
  CHECK(fields.at("text") != cacheKeyFields(addition(2), {}).at("text"));
}

TEST_CASE("missing and broken NVRTC") {
  const TemporaryTestFolder folder;
  {
    const ScopedVariable nvrtc("WEFT_NVRTC", "/nowhere/libnvrtc.so");
    CHECK(findNvrtc().library.empty());
    CHECK_THAT(findNvrtc().searched.front(), Catch::Contains("/nowhere/libnvrtc.so"));
    CHECK_THROWS_WITH(build({addition(1)}, {}),
                      Catch::Contains("no NVRTC") && Catch::Contains("/nowhere"));
  }
  {
    writeFile(folder / "libnvrtc.so", "this is no library");
    const ScopedVariable nvrtc("WEFT_NVRTC", (folder / "libnvrtc.so").string());
    CHECK_THROWS_WITH(findNvrtc(),
                      Catch::Contains("does not load") && Catch::Contains("libnvrtc.so"));
  }
  {
    const std::string library = findNvrtc().library.string();
    const ScopedVariable nvrtc("WEFT_NVRTC", library);
    CHECK(findNvrtc().library == library);
    CHECK(build({addition(1)}, withoutCache()).front().error.empty());
  }
}
