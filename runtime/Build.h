// CUDA text to cubin with NVRTC, in worker processes (bad text can crash NVRTC itself), through a content-addressed cache.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

/// Where NVRTC was found, or why not.
struct NvrtcLocation {
  std::filesystem::path library;  ///< empty: none
  std::string version;            ///< "13.0"
  std::vector<std::string> searched;
};
/// $WEFT_NVRTC, $CUDA_HOME, /usr/local/cuda, the NVIDIA wheels of the Python on PATH and of .venv, the loader's path.
NvrtcLocation findNvrtc();

struct BuildRequest {
  std::string name;          ///< for messages
  std::string text;
  std::string entry;
  std::string architecture;  ///< "sm_90a"
  std::vector<std::string> extraFlags;
};

struct BuildResult {
  std::string key;          ///< hash of text, headers, flags, NVRTC version, architecture
  std::string cubin;        ///< bytes; empty if failed
  std::string ptx;          ///< when asked for
  std::string log;
  int registers = -1, spillBytes = -1, staticSharedBytes = -1;
  bool fromCache = false;
  std::string error;        ///< empty: built. Else the NVRTC log, "worker crashed (signal 11)" or "timed out after N s"
};

struct BuildOptions {
  int workers = 0;  ///< 0: number of processors
  double timeoutSeconds = 60;
  bool useCache = true;
  std::map<std::string, std::string_view> headers;  ///< include name -> text
  std::function<void(size_t done, size_t total, const std::string &name)> progress;
};

/// One result per request, in order. Never throws for bad kernel text; throws Error(unsupported) when there is no NVRTC.
std::vector<BuildResult> build(const std::vector<BuildRequest> &requests, const BuildOptions &options);

/// Entry of the hidden worker mode of the executables: serves build requests on stdin/stdout until end of file.
int buildWorkerMain();

// --- cache ---------------------------------------------------------------------------------------------------------
struct CacheStatistics { int64_t entries = 0, bytes = 0; std::filesystem::path folder; };
std::filesystem::path cacheFolder();  ///< $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else ~/.cache/weft
CacheStatistics cacheStatistics();
/// Entries whose content does not match their recorded hash; removes nothing.
std::vector<std::string> cacheVerify();
/// Removes oldest entries until at most `keepBytes` remain; returns bytes freed.
int64_t cacheCollect(int64_t keepBytes);
/// The parts of a key with their hashes, for `explain --cache-miss`.
std::map<std::string, std::string> cacheKeyParts(const BuildRequest &request, const BuildOptions &options);

}  // namespace weft::runtime
