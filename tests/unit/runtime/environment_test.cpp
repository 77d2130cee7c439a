// The table of environment variables, and that nothing else reads the environment.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/build/Nvrtc.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Files.h"
#include "runtime/system/LibrarySearch.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::runtime;
using weft::test::ScopedVariable;
using weft::test::TemporaryTestFolder;
namespace fs = std::filesystem;

TEST_CASE("every knob is described") {
  for (const EnvironmentKnob &knob : nonEmpty(environmentKnobs())) {
    CHECK(knob.meaning.ends_with("."));
    CHECK_FALSE(nameOf(knob.effect).empty());
    CHECK_NOTHROW(environmentValue(knob.name));
  }
  CHECK_THROWS_AS(environmentValue("WEFT_UNKNOWN"), std::logic_error);
}

TEST_CASE("empty is unset") {
  const ScopedVariable variable("WEFT_CACHE_DIR", "");
  CHECK_FALSE(environmentValue("WEFT_CACHE_DIR").has_value());
}

TEST_CASE("only one file reads the environment") {
  for (const char *folder : {"kernel", "ir", "passes", "codegen", "runtime", "models", "tools"}) {
    size_t filesRead = 0;
    for (const fs::directory_entry &entry :
         fs::recursive_directory_iterator(fs::path(WEFT_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension();
      if ((extension != ".cpp" && extension != ".h") ||
          entry.path().filename() == "Environment.cpp")
        continue;
      INFO(entry.path());
      const std::string text = readFile(entry.path());
      CHECK(text.find("getenv(") == std::string::npos);
      ++filesRead;
    }
    INFO(folder);
    CHECK(filesRead > 0);
  }
}

TEST_CASE("the number of workers") {
  {
    const ScopedVariable variable("WEFT_WORKERS", "3");
    CHECK(workerCount() == 3);
  }
  {
    const ScopedVariable variable("WEFT_WORKERS", "");
    CHECK(workerCount() >= 1);
  }
  for (const char *bad : {"0", "-1", "two", "2x", "99999999999"}) {
    const ScopedVariable variable("WEFT_WORKERS", bad);
    CHECK_THROWS_WITH(workerCount(), Catch::Contains("WEFT_WORKERS") && Catch::Contains(bad));
  }
}

TEST_CASE("the cache folder follows the first variable that is set") {
  const ScopedVariable home("HOME", "/home/someone"), xdg("XDG_CACHE_HOME", ""),
      own("WEFT_CACHE_DIR", "");
  CHECK(cacheFolder() == "/home/someone/.cache/weft");
  const ScopedVariable xdgSet("XDG_CACHE_HOME", "/x");
  CHECK(cacheFolder() == "/x/weft");
  const ScopedVariable ownSet("WEFT_CACHE_DIR", "/w");
  CHECK(cacheFolder() == "/w");
}

TEST_CASE("wheels: the newest layout first") {
  const TemporaryTestFolder site;
  CHECK(wheelFolders(site.path()).empty());
  fs::create_directories(site / "nvidia/cuda_nvrtc/lib");
  CHECK(wheelFolders(site.path()) == std::vector<fs::path>{site / "nvidia/cuda_nvrtc/lib"});
  fs::create_directories(site / "nvidia/cu13/lib");
  CHECK(wheelFolders(site.path()).front() == site / "nvidia/cu13/lib");
  CHECK(nvrtcIn(site / "nvidia/cu13/lib").empty());
  writeFile(site / "nvidia/cu13/lib/libnvrtc.so.12", "");
  writeFile(site / "nvidia/cu13/lib/libnvrtc.so.13", "");
  CHECK(nvrtcIn(site / "nvidia/cu13/lib").filename() == "libnvrtc.so.13");
}

TEST_CASE("Python environments: of the current folder, then around the executable, each once") {
  const TemporaryTestFolder root;
  for (const char *folder : {"here/.venv/lib/python3.11", "repository/.venv/lib/python3.12",
                             "repository/.venv/lib/python3.11", "elsewhere/.venv/lib/python3.9"})
    fs::create_directories(root / folder);
  const fs::path own = root / "repository/.venv/lib",
                 program = root / "repository/build/portable/bin/weft";
  CHECK(environmentFolders(root / "here", program) ==
        std::vector<fs::path>{root / "here/.venv/lib/python3.11/site-packages",
                              own / "python3.11/site-packages", own / "python3.12/site-packages"});
  CHECK(environmentFolders(root / "repository", program) ==
        std::vector<fs::path>{own / "python3.11/site-packages", own / "python3.12/site-packages"});
  CHECK(environmentFolders(root / "elsewhere/inner", "").empty());
}

TEST_CASE("WEFT_NVRTC = none means none") {
  const ScopedVariable nvrtc("WEFT_NVRTC", "none");
  CHECK(findNvrtc().library.empty());
  CHECK_FALSE(findNvrtc().searched.empty());
}
