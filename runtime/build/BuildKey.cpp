// The flags, headers and key of one kernel.
#include "runtime/build/BuildKey.h"

#include "runtime/build/Includes.h"
#include "runtime/system/Sha256.h"

#include <fmt/ranges.h>

#include <system_error>

namespace weft::runtime {

namespace {

/// The flags of every kernel. -default-device: lambdas are device code. ptxas reports registers and
/// spills in the log.
std::vector<std::string> flagsOf(const BuildRequest &request) {
  std::vector<std::string> flags{"--gpu-architecture=" + request.architecture, "-default-device",
                                 "--std=c++20", "--ptxas-options=-v"};
  flags.insert(flags.end(), request.extraFlags.begin(), request.extraFlags.end());
  return flags;
}

/// NVRTC tells its version as 13.0 for every update of 13.0; the size of the library tells updates
/// apart.
std::string describe(const NvrtcLocation &nvrtc) {
  std::error_code none;
  const auto size = std::filesystem::file_size(nvrtc.library, none);
  return none ? nvrtc.version : fmt::format("{} ({} bytes)", nvrtc.version, size);
}

}  // namespace

WorkerRequest workerRequest(const BuildRequest &request, const BuildOptions &options,
                            const NvrtcLocation &nvrtc) {
  return {.library = nvrtc.library.string(),
          .text = request.text,
          .flags = flagsOf(request),
          .headers = includedHeaders(request.text, options.headers)};
}

std::map<std::string, std::string> keyFields(const WorkerRequest &job, const BuildRequest &request,
                                             const NvrtcLocation &nvrtc) {
  std::map<std::string, std::string> fields{{"architecture", request.architecture},
                                            {"flags", fmt::format("{}", fmt::join(job.flags, " "))},
                                            {"nvrtc", describe(nvrtc)},
                                            {"text", sha256(job.text)}};
  for (const auto &[name, text] : job.headers) fields.emplace("header " + name, sha256(text));
  return fields;
}

std::string keyOf(const std::map<std::string, std::string> &fields) {
  Sha256 hash;
  for (const auto &[name, value] : fields) hash.updateField(name).updateField(value);
  return hash.finish();
}

}  // namespace weft::runtime
