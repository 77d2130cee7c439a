// The sites of a problem: ops that can be computed in one of several ways, the alternatives. A plan
// has the ops of one alternative of each site; with its first kernel the ops of the others are
// unnecessary, and count as finished.
#pragma once

#include "passes/select/OpSet.h"
#include "passes/select/Selection.h"

#include <vector>

namespace weft::select {

class Sites {
public:
  explicit Sites(const Problem &problem);

  size_t count() const { return all.size(); }
  size_t alternativesOf(int site) const { return all[static_cast<size_t>(site)].size(); }
  const OpSet &ops(int site, size_t alternative) const {
    return all[static_cast<size_t>(site)][alternative];
  }
  const OpSet &opsOfSite(int site) const { return whole[static_cast<size_t>(site)]; }
  /// -1: every plan has the op.
  int siteOf(int op) const { return siteOfOp[static_cast<size_t>(op)]; }
  size_t alternativeOf(int op) const { return alternativeOfOp[static_cast<size_t>(op)]; }
  /// Whether no plan has both ops.
  bool excludeEachOther(int a, int b) const {
    return siteOf(a) >= 0 && siteOf(a) == siteOf(b) && alternativeOf(a) != alternativeOf(b);
  }
  /// The ops that a kernel makes unnecessary: of the other alternatives of its sites.
  OpSet unnecessaryBeside(const std::vector<int> &ops) const;
  /// Whether plans with these ops finished may lack the op: nothing of its site is, and there are
  /// alternatives.
  bool isOpen(int op, const OpSet &finished) const {
    const int site = siteOf(op);
    return site >= 0 && alternativesOf(site) > 1 && !opsOfSite(site).intersects(finished);
  }

private:
  std::vector<std::vector<OpSet>> all;  ///< by site and alternative
  std::vector<OpSet> whole;             ///< by site
  std::vector<int> siteOfOp;
  std::vector<size_t> alternativeOfOp;
};

}  // namespace weft::select
