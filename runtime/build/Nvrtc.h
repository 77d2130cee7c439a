// NVRTC, opened at run time. Only worker processes compile with it: bad text can crash it (kernels
// with a constant shared-memory address in stmatrix do, in 13.0). The parent process opens it for
// its version alone.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weft::runtime {

struct Compilation {
  bool succeeded = false;
  std::string cubin, ptx, log;
};

class Nvrtc {
public:
  /// Throws Error(badInput) if the library cannot be loaded or lacks a function we need.
  explicit Nvrtc(const std::filesystem::path &library);
  ~Nvrtc();
  Nvrtc(const Nvrtc &) = delete;
  Nvrtc &operator=(const Nvrtc &) = delete;

  std::string version() const;  ///< "13.0"

  /// One program to cubin and PTX. Bad text is a result with a log, never an exception.
  Compilation compile(const std::string &text, const std::vector<std::string> &flags,
                      const std::map<std::string, std::string> &headers) const;

private:
  struct Functions;
  void *handle = nullptr;
  std::unique_ptr<Functions> functions;
};

/// Folders of the NVIDIA wheels below a site-packages folder that may hold NVRTC, newest first.
std::vector<std::filesystem::path> wheelFolders(const std::filesystem::path &sitePackages);

/// libnvrtc in a folder, newest version first; empty if there is none.
std::filesystem::path nvrtcIn(const std::filesystem::path &folder);

}  // namespace weft::runtime
