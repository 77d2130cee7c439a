// What differs between two plans, by what their kernels compute. Plain data, no MLIR.
//
// Kernels are paired by graph position, never by name: an op of one plan is the op of the other
// that computes the value of the same name, or, where names differ, the same op of the same
// operands. Kernels that share an op, or that exchange values which the other plan does not have,
// are one group; what a group computes is the same in both plans, by different kernels perhaps.
//
//     q k v stacked  ->  slice q, slice k, slice v        one group: the same three values
//     project q      project k      project v
//
// Chunks of a kernel are folded into it. Invariant: every kernel of both plans is in exactly one
// group.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::driver {

/// One kernel of a plan; all its chunks together.
struct PairedKernel {
  std::string name;  ///< without the suffix of a chunk
  FamilyId family;
  int64_t layer = 0;  ///< PlanKernel::layer
  std::string configuration;
  std::vector<int> kernels;                ///< of the plan: one, or as many as there are chunks
  std::vector<std::string> ops;            ///< as the plan prints them
  std::vector<int> positions;              ///< of the ops in the graph, counted over both plans
  std::vector<std::string> precisions;     ///< of the ops: "tf32", or empty
  std::vector<std::string> values;         ///< names of what the ops compute
  std::vector<std::string> reads, writes;  ///< tensors by the names that the graph gives them
  double seconds = 0;
  int64_t bytesMoved = 0;
  bool isView = false, isMeasured = false, isEdited = false;
  bool isUntold = false;  ///< its artifact has no manifest: what its time is of is not known
};

struct LayoutDifference {
  std::string tensor, before, after;  ///< layouts that the plans store it in, "phbj"; several
                                      ///< joined by " "; "-": not stored
  bool isPinned = false;              ///< in one of the plans, by the caller or by --pin
};

/// Why a group differs, the decision that explains most first.
enum class Decision : uint8_t {
  graph,
  device,
  precision,
  rewrite,
  fusion,
  chunks,
  pin,
  layout,
  schedule,
  edit,
  text,
  prices
};
std::string_view nameOf(Decision decision);

struct KernelGroup {
  std::string computes;  ///< names of the values that leave the group, or of its last op
  std::vector<PairedKernel> before, after;
  std::vector<LayoutDifference> layouts;
  std::vector<Decision> why;  ///< empty: nothing differs
  double secondsBefore() const;
  double secondsAfter() const;
  int64_t bytesBefore() const;
  int64_t bytesAfter() const;
};

struct Change {
  std::string what, before, after;
};

struct PlanDifference {
  std::vector<Change> graph;        ///< model, dtype, extents
  std::vector<Change> decisions;    ///< of the whole plan: contractions (their precision), variant,
                                    ///< device, target, prices, concurrent kernels, pins
  std::vector<KernelGroup> groups;  ///< in the order of the first plan, then of the second
  std::vector<std::string> others;  ///< members and files that differ and that nothing above names
  bool isEqual = false;
};

PlanDifference differenceOf(const runtime::Artifact &before, const runtime::Artifact &after);

}  // namespace weft::driver
