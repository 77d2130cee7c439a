// The views of `weft explain`. Each reads an artifact and answers one question, as a table or as
// JSON.
#pragma once

#include "passes/configure/CostModel.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Phase.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

class Compilation;

/// An answer in both forms.
struct Explanation {
  std::string text;
  nlohmann::json json;
};

/// How much of a plan is shown: a screen of at most 45 lines; with `all` every kernel, note and
/// table; `wide` one long row for each kernel.
struct KernelsView {
  bool all = false, wide = false;
};
Explanation explainKernels(const runtime::Artifact &artifact, const KernelsView &view);
Explanation explainKernel(const runtime::Artifact &artifact, const std::string &name);
Explanation explainFusion(const runtime::Artifact &artifact, const std::string &pair);
/// Chooses anew for every layout of the tensor, as compile does. `profile`: other prices than the
/// plan's; empty: its own.
Explanation explainLayout(const runtime::Artifact &artifact, const std::string &tensor,
                          const std::string &profile);
/// What the plan takes of memory and what other numbers of chunks would take, in bytes and time.
Explanation explainMemory(const runtime::Artifact &artifact);
/// The frontier of time and memory of a model whose graph is imported (MemoryFrontier.h). `first`:
/// with which phase to propose. `command`: what compiles the model, to be shown with flags.
/// `output`: a file for the figure, or empty.
Explanation explainFrontier(const Compilation &compilation, Phase first, const std::string &command,
                            const std::string &output);
/// The variants of each search with their times, of several layers those of every distinct part,
/// and what the next best paths lose.
std::string variantsLines(const nlohmann::json &report);
/// The same as members of an object.
nlohmann::json variantsJson(const nlohmann::json &report);
/// The table of chunks with the rule by which they were chosen; empty where there was no choice.
std::string chunksLines(const Plan &plan, const nlohmann::json &report);
/// Every attention of the plan in every kind (passes/decide/AttentionKinds.h). `profile`: as of
/// explainLayout.
Explanation explainAttention(const runtime::Artifact &artifact, const std::string &profile);
/// What a plan of packed tokens takes at each fill, padded, and against the plan of that fill
/// alone. `profile`: as of explainLayout.
Explanation explainFills(const runtime::Artifact &artifact, const std::string &profile);
/// Operators with what they compute and move, shares of the classes, bytes before and after each
/// phase. `movement`: that member of report.json, or accountReport() of a graph that nothing was
/// selected for; then there is no plan.
Explanation explainMovement(const nlohmann::json &movement, const Plan *plan);
/// Parts of every kernel's cache key and whether the cache has it; `name` empty: all kernels.
Explanation explainCache(const runtime::Artifact &artifact, const std::string &folder,
                         const std::string &name);

/// Measured times of every kernel over its configurations, the plan's marked. `profileFile`: empty
/// for what ships. `output`: a folder for figures and data, or empty. Throws Error(badInput)
/// without measured times of the plan's device.
Explanation explainDistributions(const runtime::Artifact &artifact, const std::string &folder,
                                 const std::string &profileFile, const CostModel &costModel,
                                 const std::string &output);

/// Whether a name means a reason code ("F024", "f024") or the list of all ("codes"), and no file or
/// folder.
bool meansCodes(const std::string &name);
/// One reason code, or all of them: meaning, example, remedy. Throws Error(badInput) with the
/// nearest.
Explanation explainCodes(const std::string &name);

}  // namespace weft::driver
