// Which ops may share a kernel. Proposes only: the selector decides. MLIR-free.
#pragma once

#include "kernel/ReasonCodes.h"
#include "passes/fuse/Dataflow.h"
#include "passes/select/Proposal.h"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// One attempt of a pass, kept for `explain`: accepted, or a stable reason code (ReasonCodes.h).
struct FusionRecord {
  std::string pass;         ///< "fuse", "stack-projections"
  FusionPatterns patterns;  ///< between the ops, of pass "fuse"
  std::vector<int> ops;     ///< op numbers
  std::vector<std::string> opNames;
  bool accepted = false;
  std::string code;        ///< "F012"
  std::string reason;      ///< "reduction-axis-mismatch"
  std::string detail;      ///< "i against k": the blocking axis or tensor
  int64_t savedBytes = 0;  ///< that the fusion saves or would save
  int rejectedOp = -1;     ///< the op whose label is all that `detail` says; -1: it says more
  std::vector<std::string> steps = {};  ///< of a norm that was rewritten: what its ops are called
};

/// "F012 reduction-axis-mismatch (i against k)" or "accepted".
std::string describe(const FusionRecord &record);

enum class FuseRules { paper, standard, none };

struct FuseOptions {
  FuseRules rules = FuseRules::standard;
  std::set<std::pair<int, int>> forced = {}, forbidden = {};  ///< op numbers
  int maxOps = 12;                                            ///< ops in one candidate
  int maxCandidates =
      2000;  ///< fused candidates; where they are not all, whole kernels come first, and
             ///< F070 is recorded for pairs and for the first larger set that had no place
  int64_t maxRecordBytes =
      std::numeric_limits<int64_t>::max();  ///< of all records; F070 as for maxCandidates
  int maxEpilogues = 6;                     ///< fused candidates of one contraction, beside those
  /// Why no kernel family of the target takes this contraction with an epilogue; empty if one does.
  /// Absent: no target is known, and nothing is fused into a contraction (F021).
  std::function<std::string(const Kernel &)> epilogueRejection = {};
  /// The same of a contraction with a prologue. Absent: nothing is fused in front of one (F022).
  std::function<std::string(const Kernel &)> prologueRejection = {};
  /// The same of a fused attention (kernel/AttentionRegion.h). Absent: none is proposed.
  std::function<std::string(const Kernel &)> attentionRejection = {};
  /// The same of the backward pass of one (kernel/AttentionBackwardRegion.h).
  std::function<std::string(const Kernel &)> attentionBackwardRejection = {};
};

/// A candidate: op numbers of the graph that may share one kernel.
struct FusionCandidate {
  std::vector<int> ops;  ///< ascending
  FusionPatterns patterns;
};
struct FusionResult {
  std::vector<FusionCandidate> candidates;  ///< every op alone first, then fused ones by size
  std::vector<FusionRecord> records;
  bool isCut = false;  ///< FuseOptions admitted fewer than it does by default, and more could have
                       ///< been candidates
};

/// The four structural patterns of "Data Movement Is All You Need", section 4, to a fixed point:
///   producer-consumer   an op reads what another wrote, over the same iteration space
///   reduction-consumer  the same, where one of the two reduces: spaces are equal or differ by the
///       reduced axis
///   shared-input        two ops read one tensor over one iteration space
///   launch-merging      independent ops over one iteration space: fewer launches, no byte saved
/// and, under rules `standard`, contractions with the element-wise ops that follow them
/// (Epilogues.h) and that make an operand (Prologues.h), fused attentions (Attentions.h) and their
/// backward passes (AttentionBackwards.h). The op set of every candidate is convex: no path between
/// two of its ops leaves the set. `paper` puts each op into one kernel: neighbours merge in the
/// order of the ops until nothing merges further, and launches merge only beside contractions that
/// read one tensor. `standard` keeps every connected set, because the selector may find that a
/// smaller kernel, or another owner of a shared op, in a better layout wins.
FusionResult proposeFusions(const Dataflow &flow, const FuseOptions &options);

/// Bytes between unfused and fused: traffic of the ops alone minus that of one kernel for all of
/// them. A tensor counts once per op that reads it before, once per kernel after; an intermediate
/// nobody else needs vanishes.
int64_t savedBytes(const Dataflow &flow, const std::vector<int> &ops);

}  // namespace weft
