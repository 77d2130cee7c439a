// The artifact: a folder that holds a plan and everything needed to read, edit, rebuild and run it.
// No MLIR.
//
//   plan.json      what was chosen (sorted, fit for review and diff); the source of truth
//   graph.mlir     the graph it was chosen for
//   kernels/*.cu   readable CUDA, one file a kernel; edit and `weft emit` rebuilds
//   kernels/weft/  the device headers that they include, so that they can be read and built alone
//                  (-I kernels)
//   cubin/*.cubin  compiled, named by hash
//   ptx/, sass/    with --keep: what NVRTC and the disassembler print of each kernel
//   report.json    derived: fusion records, layout prices, alternatives, statistics
//   manifest.json  what weft wrote, so that an edit shows and nothing else is replaced
//                  (runtime/artifact/Manifest.h)
//
// An artifact is written whole or not at all: into a temporary folder beside the target, then
// renamed. What else lies in the target stays (runtime/artifact/OutputFolder.h).
#pragma once

#include "plan/Plan.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/OutputFolder.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

/// "cubin/HASH.cubin": the name that content has in an artifact (HASH: first 32 digits of its
/// SHA-256).
std::string cubinName(std::string_view bytes);

struct Artifact {
  Plan plan;
  std::string graph;                           ///< graph.mlir
  std::map<std::string, std::string> sources;  ///< "kernels/NAME.cu" -> text
  /// "kernels/weft/NAME.cuh" -> text, and what a person put there for kernels to include.
  std::map<std::string, std::string> headers = {};
  std::map<std::string, std::string> cubins;  ///< "cubin/HASH.cubin" -> bytes
  std::map<std::string, std::string> listings =
      {};  ///< "ptx/NAME.ptx", "sass/NAME.sass" for people; written, never read
  nlohmann::json report;
  /// What weft wrote. Read: nothing where the folder has none, so that edits cannot be told.
  /// Written: for the files of `edited`, the hashes of what was generated; all else is taken from
  /// the artifact itself.
  std::optional<Manifest> manifest = {};
  /// Of plan.json, graph.mlir, report.json and kernels/: files that are not what weft wrote, that
  /// it did not write, or that are gone; sorted.
  std::vector<std::string> edited = {};
  std::vector<PlanEdit> planEdits =
      {};  ///< read: members of plan.json that are not what weft wrote
};

/// Throws Error(badInput) as writeArtifact does for a folder that it would reject: asked before
/// long work, not after it.
void checkOutputFolder(const std::filesystem::path &folder, const Overwrite &overwrite = {});
/// Whole or not at all; what weft wrote there before is replaced in one step (OutputFolder.h).
/// Throws Error(badInput) when the folder cannot be written or must not be replaced;
/// Error(checkFailed) when the artifact contradicts itself.
void writeArtifact(const Artifact &artifact, const std::filesystem::path &folder,
                   const Overwrite &overwrite = {});
/// The headers of an artifact by the name that kernels include them with: "weft/NAME.cuh" -> text.
std::map<std::string, std::string_view> includable(const Artifact &artifact);
/// Whether members that weft derives were edited, and none that a person may edit: then nothing is
/// to be derived anew.
bool isForged(const Artifact &artifact);
/// Throws Error(badInput) naming the member of a forged plan, what it says and what weft wrote.
void rejectForged(const Artifact &artifact, const std::string &planPath);
/// Lines for people about an artifact that is not as weft wrote it: edited files, members of
/// plan.json that do not hold, or that nobody can tell. Empty if there is nothing to say.
std::vector<std::string> editLines(const Artifact &artifact);
/// What is said of an artifact without a manifest, and what to do about it.
std::string noManifestLine(const std::string &folder = "DIR");
/// Whoever runs an artifact needs its cubins. Who looks at it, or builds it again, does not: they
/// are not read, and need not be there.
enum class Cubins { needed, left };
/// Throws Error(badInput) naming the file when there is none, or when it is incomplete or
/// malformed; with Cubins::needed, when a derived member of plan.json was edited, since who runs a
/// plan believes its launches. A kernel whose text was edited has PlanKernel::edited, and one of an
/// artifact without manifest PlanKernel::isUntold: neither is measured or verified.
Artifact readArtifact(const std::filesystem::path &folder, Cubins cubins = Cubins::needed);

}  // namespace weft::runtime
