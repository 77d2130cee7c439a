// A mask that whoever reads the masked tensor has already is not drawn again.
//
// Behind dropout, the gradient of a ReLU reads the dropped activation and is zero where that is
// zero (SavedTensors.cpp). So the gradient's own dropout, of the same mask, need only scale: where
// it drops, relu_dx gives zero whatever it is given. Drawing costs more integer instructions than
// all else in such an epilogue, and they take turns with the tensor cores.
#include "ir/LayerMarks.h"
#include "kernel/Dropout.h"
#include "passes/Rewrites.h"

namespace weft {
namespace {

/// Whether two dropouts of one type keep the same elements: bits are a function of the stream and
/// of logical coordinates (SPEC.md, "Dropout bits"). Operands of relu_dx have one type
/// (elementwise_c2).
bool haveOneMask(DropoutOp a, DropoutOp b) {
  return a.getStream() == b.getStream() && a.getP() == b.getP();
}

}  // namespace

std::vector<ImpliedMask> leaveOutImpliedMasks(GraphOp graph) {
  std::vector<ImpliedMask> found;
  for (ReluDxOp gradient : graph.getBody().front().getOps<ReluDxOp>()) {
    auto masked = gradient.getDy().getDefiningOp<DropoutOp>();
    auto dropped = gradient.getFrom().getDefiningOp<DropoutOp>();
    if (!masked || !dropped || !masked.getResult().hasOneUse() || !haveOneMask(masked, dropped))
      continue;
    BuilderOfLayer builder(masked);
    auto scaled = ScaleOp::create(builder, masked.getLoc(), masked.getX(),
                                  double(dropoutScale(masked.getP().convertToDouble())));
    masked.getResult().replaceAllUsesWith(scaled.getResult());
    masked.erase();
    found.push_back({.scaled = scaled.getResult(),
                     .reader = gradient.getResult(),
                     .dropped = dropped.getResult()});
  }
  return found;
}

}  // namespace weft
