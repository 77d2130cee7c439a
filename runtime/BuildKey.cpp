// The flags, headers and key of one kernel.
#include "runtime/BuildKey.h"

#include "runtime/Sha256.h"

#include <fmt/ranges.h>

#include <system_error>

namespace weft::runtime {

namespace {

/// The flags of every kernel. -default-device: lambdas are device code. ptxas reports registers and spills in the log.
std::vector<std::string> flagsOf(const BuildRequest &request) {
  std::vector<std::string> flags{"--gpu-architecture=" + request.architecture, "-default-device", "--std=c++20",
                                 "--ptxas-options=-v"};
  flags.insert(flags.end(), request.extraFlags.begin(), request.extraFlags.end());
  return flags;
}

/// Names in the lines `#include "NAME"` or `#include <NAME>` of a text.
std::vector<std::string> includesOf(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with("#")) continue;
    line.remove_prefix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with("include")) continue;
    const size_t open = line.find_first_of("\"<");
    const size_t close = open == line.npos ? line.npos : line.find_first_of("\">", open + 1);
    if (close != line.npos) names.emplace_back(line.substr(open + 1, close - open - 1));
  }
  return names;
}

void addIncluded(std::string_view text, const std::map<std::string, std::string_view> &available,
                 std::map<std::string, std::string> &included) {
  for (const std::string &name : includesOf(text)) {
    const auto header = available.find(name);
    if (header == available.end() || !included.emplace(name, header->second).second) continue;
    addIncluded(header->second, available, included);
  }
}

/// NVRTC tells its version as 13.0 for every update of 13.0; the size of the library tells updates apart.
std::string describe(const NvrtcLocation &nvrtc) {
  std::error_code none;
  const auto size = std::filesystem::file_size(nvrtc.library, none);
  return none ? nvrtc.version : fmt::format("{} ({} bytes)", nvrtc.version, size);
}

}  // namespace

WorkerRequest workerRequest(const BuildRequest &request, const BuildOptions &options, const NvrtcLocation &nvrtc) {
  WorkerRequest job{.library = nvrtc.library.string(), .text = request.text, .flags = flagsOf(request), .headers = {}};
  addIncluded(request.text, options.headers, job.headers);
  return job;
}

std::map<std::string, std::string> keyParts(const WorkerRequest &job, const BuildRequest &request,
                                            const NvrtcLocation &nvrtc) {
  std::map<std::string, std::string> parts{{"architecture", request.architecture},
                                           {"flags", fmt::format("{}", fmt::join(job.flags, " "))},
                                           {"nvrtc", describe(nvrtc)},
                                           {"text", sha256(job.text)}};
  for (const auto &[name, text] : job.headers)
    parts.emplace("header " + name, sha256(text));
  return parts;
}

std::string keyOf(const std::map<std::string, std::string> &parts) {
  Sha256 hash;
  for (const auto &[name, value] : parts)
    hash.updateField(name).updateField(value);
  return hash.finish();
}

}  // namespace weft::runtime
