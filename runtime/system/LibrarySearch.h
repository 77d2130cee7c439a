// Where NVIDIA's libraries may lie, in one order for all of them: the toolkit that $CUDA_HOME
// names, /usr/local/cuda, wheels of Python environments, the dynamic loader. Libraries are opened
// at run time and never linked.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace weft::runtime {

/// One library by the names it has in a folder, newest first, and the wheels below
/// site-packages/nvidia that hold it.
struct SearchedLibrary {
  std::vector<const char *> files;   ///< "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"
  std::vector<const char *> wheels;  ///< "cu13", "cuda_nvrtc"
};

/// The library's newest file in a folder; empty if there is none.
std::filesystem::path fileIn(const std::filesystem::path &folder, const SearchedLibrary &library);
/// Folders of wheels below a site-packages folder that may hold the library, newest first.
std::vector<std::filesystem::path> wheelFolders(const std::filesystem::path &sitePackages,
                                                const SearchedLibrary &library);

/// The site-packages folders of the Python environments (.venv) of the current folder, of the
/// folder of `program` and of every folder around that: a repository's or an installation's
/// environment, wherever its commands are started.
std::vector<std::filesystem::path> environmentFolders(const std::filesystem::path &current,
                                                      const std::filesystem::path &program);

/// Offers every file found to `use`, in order, and names the loader may know last, until `use`
/// returns true. Each place is noted in `searched`. What `use` throws for a file that was found is
/// passed on: silently taking another library would be worse than an error.
bool searchLibrary(const SearchedLibrary &library, std::vector<std::string> &searched,
                   const std::function<bool(const std::filesystem::path &)> &use);

/// $KNOB: a library, a folder of one, or "none". Returns its path, empty for none and for what does
/// not exist. Throws Error(badInput) for a folder without the library.
std::filesystem::path namedLibrary(const std::string &knob, const std::string &value,
                                   const SearchedLibrary &library,
                                   std::vector<std::string> &searched);

}  // namespace weft::runtime
