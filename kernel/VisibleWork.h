// Which share of the work of each op masks by position leave: no plan has to compute scores that
// are hidden, nor what is made of them or of their gradients.
#pragma once

#include "kernel/Kernel.h"

#include <vector>

namespace weft {

struct Family;

/// An op of a graph or of a kernel, with the kernel whose axes its body has. Without a body the op
/// hides nothing and needs all of its operands.
struct PlacedOp {
  const Kernel *kernel = nullptr;
  const BodyOp *body = nullptr;
  std::vector<int> inputs, outputs;  ///< tensors
};

struct PlacedTensor {
  std::vector<int64_t> extents;
  bool isResult = false;  ///< read from outside, whole
};

struct VisibleShares {
  std::vector<double> ops;      ///< from 0 to 1, of contractions; 1 for all others
  std::vector<double> tensors;  ///< of the elements: what masks leave of it
};

/// Ops in topological order. Causal masks, windows and block masks count, over rows that are evenly
/// spread where there are many; what arguments say of lengths and segments hides nothing here.
VisibleShares visibleShares(const std::vector<PlacedOp> &ops,
                            const std::vector<PlacedTensor> &tensors);

/// Of the kernel's flop, what masks by position leave.
double visibleShare(const Kernel &kernel);
/// Of the kernel's flop, what a kernel of the family computes: fused attentions skip tiles of
/// scores that masks by position hide; all others compute hidden scores, too.
double computedShare(const Kernel &kernel, const Family &family);

}  // namespace weft
