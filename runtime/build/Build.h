// CUDA text to cubin with NVRTC, in worker processes (bad text can crash NVRTC itself), through a
// content-addressed cache.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
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
/// $WEFT_NVRTC and nothing else if it is set; else $CUDA_HOME, /usr/local/cuda, the NVIDIA wheels
/// of .venv in the current folder and of the python3 on PATH, the loader's path. $WEFT_NVRTC =
/// "none", or a path where nothing lies, means that there is none. Throws Error(badInput) if a
/// library is found or named but does not load.
NvrtcLocation findNvrtc();

struct BuildRequest {
  std::string name;  ///< for messages
  std::string text;
  std::string entry;
  std::string architecture;  ///< "sm_90a"
  std::vector<std::string> extraFlags;
};

struct BuildResult {
  std::string key;             ///< hash of text, headers, flags, NVRTC version, architecture
  std::string cubin;           ///< bytes; empty if failed
  std::string ptx;             ///< when asked for
  std::string log;             ///< of NVRTC and ptxas
  int registers = -1;          ///< a thread
  int spillBytes = -1;         ///< stored and loaded, a thread
  int staticSharedBytes = -1;  ///< a block
  bool fromCache = false;
  double seconds = 0;  ///< of one processor, spent in NVRTC; 0 from the cache
  std::string error;   ///< empty: built. Else the NVRTC log, "worker crashed (signal 11)" or "timed
                       ///< out after N s"
  std::string warning;  ///< ptxas's, of a cubin that is right but slow: WGMMAs are serialized
  /// Why the cubin is not what was asked for; empty where it is.
  const std::string &failure() const { return error.empty() ? warning : error; }
};

struct BuildOptions {
  int workers = 0;  ///< 0: $WEFT_WORKERS, else the number of processors
  double timeoutSeconds = 60;
  bool useCache = true;
  bool keepPtx =
      false;  ///< fill BuildResult::ptx; compiles even what is in the cache, which holds none
  std::map<std::string, std::string_view> headers;  ///< include name -> text
  std::function<void(size_t done, size_t total, const std::string &name)> progress;
  /// Once true, compilers are ended at once; what is not built by then has the error
  /// cancelledError.
  const std::atomic<bool> *cancelled = nullptr;
  /// What did not go as hoped but does not change results: an unwritable cache, a damaged entry
  /// that is rebuilt.
  std::function<void(const std::string &text)> note;
  /// Program to start as worker; empty: this one. Its main must begin with serveAsBuildWorker().
  std::filesystem::path workerExecutable;
};

inline constexpr const char *cancelledError = "cancelled";

/// One result per request, in order. Never throws for bad kernel text; throws Error(unsupported)
/// when there is no NVRTC.
std::vector<BuildResult> build(const std::vector<BuildRequest> &requests,
                               const BuildOptions &options);

/// Lot after lot with the same options: NVRTC is looked for once, and worker processes are kept
/// from one lot to the next. They end with the thread that built the last one. Throws
/// Error(unsupported) when there is no NVRTC.
class BuildSession {
public:
  explicit BuildSession(BuildOptions options);
  ~BuildSession();
  BuildSession(const BuildSession &) = delete;
  BuildSession &operator=(const BuildSession &) = delete;

  /// As the function of this name.
  std::vector<BuildResult> build(const std::vector<BuildRequest> &requests);
  /// Worker processes started so far.
  size_t workersStarted() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// The hidden argument that makes an executable a worker.
inline constexpr const char *buildWorkerArgument = "--weft-build-worker";
/// For the first line of every main that may build: the exit code if this process was started as a
/// worker, else nothing.
///   if (const std::optional<int> code = weft::runtime::serveAsBuildWorker(argc, argv)) return
///       *code;
std::optional<int> serveAsBuildWorker(int argumentCount, char **arguments);
/// The worker itself: answers build requests on the socket that is its standard input, until end of
/// file.
int buildWorkerMain();

// --- cache
// -------------------------------------------------------------------------------------------------
// One folder a kernel, named by its key, holding kernel.cu, kernel.cubin and meta.json. Entries
// appear by renaming a finished folder and are checked against their recorded hash whenever they
// are read. Deleting any of them is safe.
struct CacheStatistics {
  int64_t entries = 0, bytes = 0;
  std::filesystem::path folder;
};
/// $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else ~/.cache/weft; nothing where none of these
/// variables is set: then nothing is kept.
std::optional<std::filesystem::path> knownCacheFolder();
/// The same for who cannot do without: throws Error(badInput).
std::filesystem::path cacheFolder();
inline constexpr const char *noCacheFolder =
    "none of WEFT_CACHE_DIR, XDG_CACHE_HOME and HOME is set";
CacheStatistics cacheStatistics();
/// Entries whose content does not match their recorded hash; removes nothing.
std::vector<std::string> cacheVerify();
/// Removes entries, those unused longest first, until at most `keepBytes` remain, and what dead
/// writers left; returns bytes freed.
int64_t cacheCollect(int64_t keepBytes);
/// The fields of a key with their hashes, for `explain --cache-miss`.
std::map<std::string, std::string> cacheKeyFields(const BuildRequest &request,
                                                  const BuildOptions &options);

}  // namespace weft::runtime
