// Chosen kernels to CUDA text and cubins, recorded in the plan. No MLIR.
#pragma once

#include "codegen/Emit.h"
#include "plan/PlanBuilder.h"
#include "runtime/build/Build.h"
#include "tools/driver/Flags.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft::driver {

/// Text of every kernel that has one (views and library GEMMs have none), with what is needed to
/// build it. All chunks of a kernel have one text, and so have kernels of several layers that are
/// equal but for names.
struct EmittedPlan {
  std::map<std::string, std::string_view>
      available;  ///< headers that kernels may include, by name; weft's, unless one was edited
  std::map<std::string, std::string> sources;         ///< "kernels/NAME.cu" -> readable text
  std::vector<runtime::BuildRequest> requests;        ///< canonical text, in plan order
  std::vector<std::vector<size_t>> kernelsOfRequest;  ///< indices into plan.kernels, per request
};

/// Lines of a kernel's header comment beyond what its own data says: why it is fused, and into what
/// it is not.
using NotesOf = std::function<std::vector<std::string>(const ChosenKernel &chosen)>;

/// A kernel of a plan with what emission derives of graph, layouts and knobs: key, library GEMM,
/// entry, launch, parameters, ops, family and configuration; the rest as it is in `entry`.
PlanKernel derivedEntry(const PlanKernel &entry, const ChosenKernel &chosen,
                        const std::string &architecture);

/// Whether a kernel that was measured has another text now, for an architecture, than it had then.
bool isOfOlderText(const ChosenKernel &chosen, const std::string &architecture);

/// Emits every kernel and fills its entry, key, source, launch and parameters in the plan.
EmittedPlan emitKernels(PlannedKernels &planned, const std::string &architecture,
                        const NotesOf &notesOf);

/// Sets what verification records are found by: the hash of every kernel's exact text, or of its
/// library GEMM.
void setTextHashes(Plan &plan, const EmittedPlan &emitted);

/// The plan's note of an artifact whose kernels were emitted only.
inline constexpr const char *stoppedNote = "cubins: skipped, --stop-after emit";

/// What a build did, for the console; never part of the artifact, which is the same whether the
/// cache was warm.
struct BuildSummary {
  size_t built = 0, fromCache = 0;
  double slowestSeconds =
      0;                 ///< of one processor, for the kernel that took the longest of those built
  bool skipped = false;  ///< no NVRTC
};

/// Files of an artifact, by name.
struct BuiltFiles {
  std::map<std::string, std::string> cubins, listings;
};

/// The headers that the sources of an artifact include: "kernels/weft/NAME.cuh" -> text.
std::map<std::string, std::string> headerFiles(const EmittedPlan &emitted);

/// Builds all requests, fills registers, spills and cubin names in the plan, returns cubins and the
/// listings to keep. Without NVRTC the plan notes "cubins: skipped, no NVRTC", or, with `strict`,
/// Error(strictMiss) is thrown. A kernel that does not build throws Error(checkFailed) with NVRTC's
/// log, in which files and lines are those of the artifact in `folder`; empty: of no folder.
BuiltFiles buildCubins(Plan &plan, const EmittedPlan &emitted, bool strict, const KeepFlags &keep,
                       BuildSummary &summary, const std::string &folder = "");

}  // namespace weft::driver
