// Where NVRTC may lie, in order; the first library found is used, and one that is named but broken is an error rather
// than a reason to search on: silently compiling with another toolkit would be worse.
#include "kernel/Error.h"
#include "runtime/Build.h"
#include "runtime/Environment.h"
#include "runtime/Nvrtc.h"

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> subfolders(const fs::path &folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, none))
    if (entry.is_directory(none)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// The site-packages folders of the python3 on PATH. Only Python itself knows them (virtual environments, version
/// managers, distributions with folders of their own), so it is asked; it is started only if no toolkit was found.
std::vector<fs::path> pythonFolders() {
  std::vector<fs::path> folders;
  FILE *pipe = popen("python3 -c 'import site, sys; "
                     "print(\"\\n\".join(site.getsitepackages() + [site.getusersitepackages()]))' 2>/dev/null",
                     "r");
  if (!pipe) return folders;
  std::string output;
  for (int character = fgetc(pipe); character != EOF; character = fgetc(pipe))
    output.push_back(char(character));
  pclose(pipe);
  for (size_t start = 0, end; (end = output.find('\n', start)) != output.npos; start = end + 1)
    folders.emplace_back(output.substr(start, end - start));
  return folders;
}

class Search {
public:
  /// Looks in a folder, and notes that it did.
  bool tryFolder(const fs::path &folder, const std::string &reason) {
    location.searched.push_back(reason.empty() ? folder.string() : fmt::format("{} ({})", folder.string(), reason));
    const fs::path library = nvrtcIn(folder);
    return !library.empty() && use(library);
  }
  bool tryToolkit(const fs::path &root, const std::string &reason) {
    return tryFolder(root / "lib64", reason) || tryFolder(root / "lib", reason);
  }
  bool tryWheels(const fs::path &sitePackages, const std::string &reason) {
    for (const fs::path &folder : wheelFolders(sitePackages))
      if (tryFolder(folder, reason)) return true;
    location.searched.push_back(fmt::format("{}/nvidia ({})", sitePackages.string(), reason));
    return false;
  }
  bool tryLoader() {
    for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      location.searched.push_back(fmt::format("{} (dynamic loader)", name));
      try {
        return use(name);
      } catch (const Error &) {  // the loader does not know this name
      }
    }
    return false;
  }
  /// $WEFT_NVRTC: a library, a folder of one, or "none".
  void useNamed(const std::string &value) {
    location.searched.push_back("$WEFT_NVRTC = " + value);
    std::error_code none;
    if (value == "none" || !fs::exists(value, none)) return;
    const fs::path library = fs::is_directory(value, none) ? nvrtcIn(value) : fs::absolute(value);
    if (library.empty()) throw Error::badInput("$WEFT_NVRTC names {}, a folder without libnvrtc.so", value);
    use(library);
  }
  NvrtcLocation location;

private:
  bool use(const fs::path &library) {
    location.version = Nvrtc(library).version();
    location.library = library;
    return true;
  }
};

}  // namespace

fs::path nvrtcIn(const fs::path &folder) {
  std::error_code none;
  for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if (fs::exists(folder / name, none)) return fs::absolute(folder / name);
  return {};
}

std::vector<fs::path> wheelFolders(const fs::path &sitePackages) {
  // nvidia/cu13/lib since CUDA 13, nvidia/cuda_nvrtc/lib before.
  std::vector<fs::path> folders;
  std::error_code none;
  for (const char *package : {"cu13", "cuda_nvrtc"})
    if (const fs::path folder = sitePackages / "nvidia" / package / "lib"; fs::is_directory(folder, none))
      folders.push_back(folder);
  return folders;
}

NvrtcLocation findNvrtc() {
  Search search;
  if (const auto named = environmentValue("WEFT_NVRTC")) {
    search.useNamed(*named);
    return search.location;
  }
  const auto toolkit = environmentValue("CUDA_HOME");
  if ((toolkit && search.tryToolkit(*toolkit, "$CUDA_HOME")) || search.tryToolkit("/usr/local/cuda", ""))
    return search.location;
  for (const fs::path &python : subfolders(".venv/lib"))
    if (search.tryWheels(fs::absolute(python) / "site-packages", ".venv")) return search.location;
  for (const fs::path &folder : pythonFolders())
    if (search.tryWheels(folder, "python3 on PATH")) return search.location;
  search.tryLoader();
  return search.location;
}

}  // namespace weft::runtime
