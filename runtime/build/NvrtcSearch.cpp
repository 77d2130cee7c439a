// Where NVRTC may lie, in order; the first library found is used, and one that is named but broken
// is an error rather than a reason to search on: silently compiling with another toolkit would be
// worse.
#include "runtime/build/Build.h"
#include "runtime/build/Nvrtc.h"
#include "runtime/system/Environment.h"
#include "runtime/system/LibrarySearch.h"

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

/// nvidia/cu13/lib since CUDA 13, nvidia/cuda_nvrtc/lib before.
const SearchedLibrary nvrtc{.files = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                            .wheels = {"cu13", "cuda_nvrtc"}};

}  // namespace

fs::path nvrtcIn(const fs::path &folder) { return fileIn(folder, nvrtc); }

std::vector<fs::path> wheelFolders(const fs::path &sitePackages) {
  return wheelFolders(sitePackages, nvrtc);
}

NvrtcLocation findNvrtc() {
  NvrtcLocation location;
  const auto use = [&](const fs::path &library) {
    location.version = Nvrtc(library).version();
    location.library = library;
    return true;
  };
  if (const auto named = environmentValue("WEFT_NVRTC")) {
    const fs::path library = namedLibrary("WEFT_NVRTC", *named, nvrtc, location.searched);
    if (!library.empty()) use(library);
  } else {
    searchLibrary(nvrtc, location.searched, use);
  }
  return location;
}

}  // namespace weft::runtime
