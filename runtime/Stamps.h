// Which exact kernel texts agreed with fp64 on a GPU, and on which one: stamps, as text that can be read, merged and shipped.
//
//   # weft verified 1
//   # textHash  kernel  tool  GPU
//   7d3f...     softmax__h_b_j_k  0.1.0  NVIDIA H200
//
// Without a date, so that verifying again changes nothing. Three stores: the shipped one (profiles/verified.txt, embedded at
// build), which commands that write artifacts consult; that of this machine, beside the kernel cache, which `verify` adds to
// and `explain` consults, too; and the artifact itself (PlanKernel::verifiedOn).
#pragma once

#include "runtime/Artifact.h"
#include "runtime/Build.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace weft::runtime {

struct Stamp {
  std::string textHash;
  std::string kernel;  ///< a readable name, of no meaning
  std::string tool;    ///< version of weft that verified
  std::string gpu;
  bool operator==(const Stamp &) const = default;
};

using Stamps = std::map<std::string, Stamp>;  ///< by textHash

/// Throws Error(badInput) naming `where` and the line.
Stamps parseStamps(std::string_view text, const std::string &where);
std::string printStamps(const Stamps &stamps);

const Stamps &shippedStamps();
std::filesystem::path machineStampsFile();
/// Empty if there is no such file.
Stamps readStamps(const std::filesystem::path &file);
/// Adds to the file as one step: readers see the old or the new one, and of several processes that add at once none loses what
/// another adds. Throws Error(badInput) when it cannot be written.
void addStamps(const Stamps &stamps, const std::filesystem::path &file);

/// What is stamped of a text: hash of text (without its launch checks, kernel/LaunchCheck.h), headers it includes, flags and architecture; not the NVRTC that built it.
std::string textHashOf(const BuildRequest &request, const BuildOptions &options);
/// The same of a library product: of its key, which holds problem, layouts, algorithm and library version.
std::string textHashOf(const PlanKernel &product);

/// Sets the kernel's textHash, and verifiedOn by the stamps; a stamp that the plan holds for the same text stays.
void stamp(PlanKernel &kernel, const std::string &textHash, const Stamps &stamps);

}  // namespace weft::runtime
