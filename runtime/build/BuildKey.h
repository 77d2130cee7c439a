// What a cubin depends on, and the key made of it (design rule 12). Whatever NVRTC is given stands
// here; the rest of the build cannot influence the bytes.
#pragma once

#include "runtime/build/Build.h"
#include "runtime/build/WorkerProtocol.h"

#include <map>
#include <string>

namespace weft::runtime {

/// The job for a worker: all flags, and only the headers that the text includes, directly or
/// through headers. Of what else is included NVRTC gets headers that stop it
/// (runtime/build/Includes.h); these follow from the text and are no part of the key.
WorkerRequest workerRequest(const BuildRequest &request, const BuildOptions &options,
                            const NvrtcLocation &nvrtc);

/// Part -> hash of its content, or its content where that is short: "text", "header
/// weft/vector.cuh", "flags", "architecture", "nvrtc".
std::map<std::string, std::string> keyFields(const WorkerRequest &job, const BuildRequest &request,
                                             const NvrtcLocation &nvrtc);

/// Hash of the fields.
std::string keyOf(const std::map<std::string, std::string> &fields);

}  // namespace weft::runtime
