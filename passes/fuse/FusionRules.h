// Whether two sets of ops may share a kernel, and if not, why: the rules of fusion, without the
// search for sets.
#pragma once

#include "passes/fuse/Fusion.h"
#include "passes/fuse/Reachability.h"

#include <optional>

namespace weft {

using OpSet = std::vector<int>;  ///< op indices, ascending

OpSet unite(const OpSet &a, const OpSet &b);
bool contains(const OpSet &set, int op);
/// A mask of tokens, whose second operand are their offsets.
bool masksTokens(const FlowOp &op);
bool sharesTensor(const std::vector<int> &a, const std::vector<int> &b);

struct Rejection {
  ReasonCode code;
  std::string detail;
  int op = -1;  ///< of the ops that may not fuse the one whose label `detail` is; -1: it says more
};

class FusionRules {
public:
  FusionRules(const Dataflow &flow, const FuseOptions &options)
      : flow(flow), options(options), reachability(flow) {}

  /// Why no candidate of several ops may hold this op.
  std::optional<ReasonCode> opForbids(int op) const;
  /// By what the ops are, the options, and the entry points that the ops belong to.
  std::optional<Rejection> rejectOps(const OpSet &both) const;
  /// By the options and the entry points alone.
  std::optional<Rejection> rejectByChoice(const OpSet &both) const {
    return rejectByChoice(both, options.maxOps);
  }
  std::optional<Rejection> rejectByChoice(const OpSet &both, int maxOps) const;
  /// An op outside the set on a path between two of its ops.
  std::optional<int> opBetween(const OpSet &both) const { return reachability.opBetween(both); }
  /// An op that reads elements of another op's result at other coordinates than its element's.
  std::optional<Rejection> rejectPartnerAccess(const OpSet &both) const;
  /// By how the ops reach their elements, and the iteration spaces of the two sides in the axes of
  /// their common kernel.
  std::optional<Rejection> rejectSpaces(const OpSet &a, const OpSet &b, const OpSet &both) const;

  /// Offsets of which masks of tokens load one element each: to read them once saves nothing.
  bool areOffsets(int tensor) const;
  /// No path leads from one to the other, and they read no tensor in common but offsets.
  bool areIndependent(const OpSet &a, const OpSet &b) const;
  /// Whether the sets stand beside contractions that read one tensor: the projections of one input
  /// are siblings, and so are their gradients with respect to the weights.
  bool areSiblings(const OpSet &a, const OpSet &b) const;
  /// Whether the set holds a pair of the option --fuse.
  bool isForced(const OpSet &set) const { return holdsPair(set, options.forced).has_value(); }

private:
  std::optional<std::pair<int, int>> holdsPair(const OpSet &set,
                                               const std::set<std::pair<int, int>> &pairs) const;
  std::optional<Rejection> rejectEntryPoints(const OpSet &both) const;
  ReasonCode relationToContraction(const OpSet &both, int contraction) const;
  std::optional<Rejection> rejectAccess(const OpSet &both) const;
  Rejection explainSpaces(const OpSet &a, const OpSet &b, const Kernel &kernel,
                          const AxisSets &left, const AxisSets &right) const;
  std::optional<std::string> differingExtents(const OpSet &a, const OpSet &b) const;
  std::set<int> readByContractionsBeside(const OpSet &set) const;

  const Dataflow &flow;
  const FuseOptions &options;
  const Reachability reachability;
};

}  // namespace weft
