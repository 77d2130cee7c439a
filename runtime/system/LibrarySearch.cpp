// The order of search for NVIDIA's libraries; see LibrarySearch.h.
#include "runtime/system/LibrarySearch.h"

#include "kernel/Error.h"
#include "runtime/system/Environment.h"

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

/// The program that runs; empty if the system does not say.
fs::path executable() {
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none);
}

/// The site-packages folders of the python3 on PATH. Only Python itself knows them (virtual
/// environments, version managers, distributions with separate folders), so it is asked; it is
/// started only if no toolkit was found.
std::vector<fs::path> pythonFolders() {
  std::vector<fs::path> folders;
  FILE *pipe = popen(
      "python3 -c 'import site, sys; "
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
  Search(const SearchedLibrary &library, std::vector<std::string> &searched,
         const std::function<bool(const fs::path &)> &use)
      : library(library), searched(searched), use(use) {}

  bool tryToolkit(const fs::path &root, const std::string &reason) {
    return tryFolder(root / "lib64", reason) || tryFolder(root / "lib", reason);
  }
  bool tryWheels(const fs::path &sitePackages, const std::string &reason) {
    for (const fs::path &folder : wheelFolders(sitePackages, library))
      if (tryFolder(folder, reason)) return true;
    searched.push_back(fmt::format("{}/nvidia ({})", sitePackages.string(), reason));
    return false;
  }
  bool tryLoader() {
    for (const char *name : library.files) {
      searched.push_back(fmt::format("{} (dynamic loader)", name));
      try {
        if (use(name)) return true;
      } catch (const Error &) {  // the loader does not know this name
      }
    }
    return false;
  }

private:
  bool tryFolder(const fs::path &folder, const std::string &reason) {
    searched.push_back(reason.empty() ? folder.string()
                                      : fmt::format("{} ({})", folder.string(), reason));
    const fs::path file = fileIn(folder, library);
    return !file.empty() && use(file);
  }

  const SearchedLibrary &library;
  std::vector<std::string> &searched;
  const std::function<bool(const fs::path &)> &use;
};

}  // namespace

fs::path fileIn(const fs::path &folder, const SearchedLibrary &library) {
  std::error_code none;
  for (const char *name : library.files)
    if (fs::exists(folder / name, none)) return fs::absolute(folder / name);
  return {};
}

std::vector<fs::path> wheelFolders(const fs::path &sitePackages, const SearchedLibrary &library) {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const char *package : library.wheels)
    if (const fs::path folder = sitePackages / "nvidia" / package / "lib";
        fs::is_directory(folder, none))
      folders.push_back(folder);
  return folders;
}

std::vector<fs::path> environmentFolders(const fs::path &current, const fs::path &program) {
  std::vector<fs::path> roots{current}, folders;
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    roots.push_back(folder);
  for (const fs::path &root : roots)
    for (const fs::path &python : subfolders(root / ".venv/lib"))
      if (const fs::path packages = python / "site-packages";
          std::ranges::find(folders, packages) == folders.end())
        folders.push_back(packages);
  return folders;
}

bool searchLibrary(const SearchedLibrary &library, std::vector<std::string> &searched,
                   const std::function<bool(const fs::path &)> &use) {
  Search search(library, searched, use);
  const auto toolkit = environmentValue("CUDA_HOME");
  if ((toolkit && search.tryToolkit(*toolkit, "$CUDA_HOME")) ||
      search.tryToolkit("/usr/local/cuda", ""))
    return true;
  for (const fs::path &folder : environmentFolders(fs::current_path(), executable()))
    if (search.tryWheels(folder, ".venv")) return true;
  for (const fs::path &folder : pythonFolders())
    if (search.tryWheels(folder, "python3 on PATH")) return true;
  return search.tryLoader();
}

fs::path namedLibrary(const std::string &knob, const std::string &value,
                      const SearchedLibrary &library, std::vector<std::string> &searched) {
  searched.push_back(fmt::format("${} = {}", knob, value));
  std::error_code none;
  if (value == "none" || !fs::exists(value, none)) return {};
  const fs::path file =
      fs::is_directory(value, none) ? fileIn(value, library) : fs::absolute(value);
  if (file.empty())
    throw Error::badInput("${} names {}, a folder without {}", knob, value, library.files.back());
  return file;
}

}  // namespace weft::runtime
