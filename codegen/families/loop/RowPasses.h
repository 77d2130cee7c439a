// How often an op walks its row. Lowering, pricing and writing results in place must agree on it.
#pragma once

#include "kernel/Kernel.h"

namespace weft {

/// The number of consecutive row reductions of an op: softmax a maximum and a sum, layer
/// norm a mean and a variance, every other reduction one, maps none.
inline int reductionsOf(const BodyOp &op) {
  if (op.reducedAxes.empty()) return 0;
  const bool needsTwo = op.kind == OpKind::softmax || op.kind == OpKind::layerNorm ||
                        op.kind == OpKind::localSoftmax || op.kind == OpKind::reduceSubvectors;
  return needsTwo ? 2 : 1;
}

/// Values of a row that the op computes before a reduction and needs behind it: gradients of norms
/// the scaled gradient and the normalized element.
inline int keptOf(const BodyOp &op) {
  if (op.reducedAxes.empty()) return 0;
  return op.kind == OpKind::layerNormDx || op.kind == OpKind::rmsNormDx ? 2 : 1;
}

}  // namespace weft
