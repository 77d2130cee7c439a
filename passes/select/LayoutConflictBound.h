// Layout-conflict bound: what later readers lose, at least, because of the layouts of the live
// tensors. The search adds it to its lower bound.
//
// Live tensors. A reader is fastest in the layouts of its best configurations. If a tensor exists
// in none of them, either the reader's kernel is slower than its best, or a transpose runs first;
// one transpose may serve all readers of the tensor. A live tensor therefore costs at least the
// lesser of its cheapest transpose and the sum of what its readers lose. Readers are groups of ops
// that may share kernels. Of the tensors that one group reads only the costliest counts, because
// one slow kernel may be slow for all of them.
//
// Pending tensors, which are not computed yet. If no single layout is best for the writer and all
// readers, such a tensor costs at least the lesser of its cheapest transpose and the least that
// they lose together. Which of them loses depends on the layout. So only pending tensors with
// disjoint groups are counted, and what live tensors cost in these groups is included, not added:
// no loss of a group and no transpose is counted for two pending tensors.
//
// An op of a site with alternatives loses nothing as long as plans may lack it.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

#include <set>

namespace weft::select {

/// LayoutConflictBound on the live tensors of one layer. Not to be asked from several threads.
class LayerConflictBound {
public:
  /// Seconds beyond Layer::after that every readOption to the end costs, at least.
  double of(MaskView masks) const;

private:
  friend class LayoutConflictBound;
  struct Reader {
    int group = -1;
    std::vector<double> losses = {};  ///< by layout of the tensor
  };
  /// What one tensor costs where it exists in the layouts of one mask.
  struct Share {
    bool isKnown = false;
    double cost = 0;
    std::vector<double> ofReaders = {};  ///< empty where the cost is zero
  };
  /// What groups lose together by a tensor that is yet to be computed, whatever its layout.
  struct Pending {
    double seconds = 0;
    std::vector<int> groups = {};
  };
  struct Tracked {
    std::vector<Reader> readers = {};
    std::vector<double> transposes = {};     ///< by layout: the cheapest transpose out of it
    mutable std::vector<Share> shares = {};  ///< by mask, as they are asked for
  };
  static const Share &shareOf(const Tracked &tracked, LayoutMask mask);
  std::vector<Tracked> tracked;
  std::vector<Pending> pending;  ///< of groups that differ
  int groups = 0;
};

class LayoutConflictBound {
public:
  LayoutConflictBound(const Problem &problem, const Prices &prices);

  LayerConflictBound of(const Layer &layer) const;

private:
  /// One readOption in which an op may read a tensor: the candidate, and what its kernel loses by
  /// layout.
  struct ReadOption {
    int candidate = -1;
    std::vector<double> losses = {};
  };
  struct Use {
    int op = -1;
    std::vector<ReadOption> readOptions = {};
  };
  void findGroups();
  void findUses();
  void findConflicts();
  double conflictOf(int tensor, int producer, std::set<int> &members) const;
  int groupOf(int op) const;

  const Problem &problem;
  const Prices &prices;
  const Sites sites;
  std::vector<OpSet> opsOf;            ///< candidate
  std::vector<int> parent;             ///< op
  std::vector<std::vector<Use>> uses;  ///< tensor
  /// A tensor whose writer and readers do not all have the layout that is best for each.
  struct Conflict {
    double seconds = 0;         ///< that they lose together, at least
    int producer = -1;          ///< op
    std::set<int> groups = {};  ///< that the loss may fall to
  };
  std::vector<Conflict> conflicts;  ///< costliest first
  std::vector<std::vector<std::vector<double>>>
      writeLosses;                                 ///< candidate, output, layout of its tensor
  std::vector<std::vector<double>> transposesOut;  ///< tensor, layout
};

}  // namespace weft::select
