// The layers of the selection graph: sets of finished or unnecessary ops, and the kernels that lead
// from one to another. Layouts are ignored here, so the cheapest way from a layer to the end is a
// lower bound for every state of that layer.
//
// Invariant: layers are sorted by the number of finished ops, the empty set first; transitions go
// forward.
#pragma once

#include "passes/select/OpSet.h"
#include "passes/select/Prices.h"
#include "passes/select/Sites.h"

#include <limits>
#include <map>
#include <set>

namespace weft::select {

struct Transition {
  int candidate = -1;
  int target = -1;  ///< layer
};

struct Layer {
  OpSet finished;
  std::vector<Transition> next = {};  ///< ascending by candidate
  double after = infinite;            ///< seconds from here to the end, at least
  std::vector<int> tracked = {};      ///< live tensors with a choice of layouts
  int64_t untrackedBytes = 0;         ///< live temporaries without
};

class FinishedOpLattice {
public:
  /// Where the layers would take more than `most` bytes, or are more than `mostLayers`, fused
  /// candidates are left out, those that gain least first; every op alone remains. At most
  /// `mostKept` are tried.
  FinishedOpLattice(const Problem &problem, const Prices &prices,
                    int64_t most = std::numeric_limits<int64_t>::max(),
                    int64_t mostKept = std::numeric_limits<int64_t>::max());
  /// Each holds a few states: a search has 200,000 in all (Options::states).
  static constexpr int64_t mostLayers = 16'384;

  /// Fused candidates that were left out.
  int64_t leftOut() const { return leftOutCount; }
  /// And those that were not.
  int64_t kept() const { return keptCount; }
  /// Seconds that no plan of all candidates, those left out among them, takes less than: every op's
  /// part of the cheapest kernel that has it.
  double boundOfAll() const;
  /// Over all paths the least peak of live temporaries, each counted once and in any layout: while
  /// a kernel runs, or between two kernels.
  int64_t leastTemporaryBytes(bool betweenKernels) const;

  const std::vector<Layer> &layers() const { return all; }
  bool isComplete(const Layer &layer) const {
    return layer.finished.size() == static_cast<int>(problem.ops.size());
  }
  /// Whether the bytes of a tensor count as the plan's own.
  bool isTemporary(int tensor) const;
  const Sites &sites() const { return siteMap; }

private:
  void findDependencies();
  bool isChoice(int op) const;
  OpSet neededBy(const Candidate &candidate, const OpSet &unnecessary) const;
  void chooseOrder();
  void chooseOrderAcross();
  std::vector<int> orderOf(const std::vector<int> &ops) const;
  std::vector<int> leastGainFirst() const;
  void offer(const std::vector<bool> &isLeftOut);
  bool openLayers(int64_t most);
  void findBounds();
  bool isLive(int tensor, const OpSet &finished) const;
  Layer openLayer(const OpSet &finished) const;
  Layer openLayer(const OpSet &finished, const Layer &before, int candidate) const;

  const Problem &problem;
  const Prices &prices;
  const Sites siteMap;
  std::vector<OpSet> ancestors;  ///< op: up to those of sites, of which plans may have others
  std::vector<OpSet> consumers, opsOf, needs;
  std::vector<OpSet> finishedBy;  ///< candidate: its ops and those that it makes unnecessary
  std::vector<std::vector<int>> touchedBy;  ///< candidate: what those read or write, ascending
  std::vector<OpSet> producers;             ///< tensor: one op an alternative of a site
  std::vector<int> order;                   ///< of ops
  std::vector<std::vector<int>> candidatesOf;
  int64_t leftOutCount = 0, keptCount = 0;
  std::vector<Layer> all;
};

}  // namespace weft::select
