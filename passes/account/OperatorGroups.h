// Which ops of a graph are one operator, and what each then reads and writes; the rules are those
// of Operators.h. Private to passes/account.
#pragma once

#include "passes/fuse/Dataflow.h"

#include <map>
#include <set>
#include <vector>

namespace weft {

/// An op as it is accounted for. Where contractions are summed, they write the sum and the adds
/// between them nothing.
struct AccountedOp {
  int group = -1;                           ///< the first op of the operator
  std::vector<int> operands, results;       ///< tensors; those beyond the graph's are sums
  int64_t masksRead = 0, masksWritten = 0;  ///< elements
  bool isInsideSum = false;  ///< an add that a GEMM over stacked operands does by itself
};

struct AccountedOps {
  const Dataflow &flow;
  std::vector<AccountedOp> ops;                  ///< per op of the graph
  std::vector<FlowTensor> sums = {};             ///< tensors numbered from flow.tensors.size() on
  std::map<int, std::vector<int>> readers = {};  ///< of each tensor, among accounted ops
  std::set<int> returned = {};                   ///< tensors that callers see

  const FlowTensor &tensor(int index) const {
    const size_t known = flow.tensors.size();
    return size_t(index) < known ? flow.tensors[size_t(index)] : sums[size_t(index) - known];
  }
};

AccountedOps groupOps(const Dataflow &flow);

}  // namespace weft
