// Softmax in three steps with the access pattern of the GEMMs around it: LS per sub-vector, IR
// over the sub-vectors of a row, GS per element. Known downside: run as three kernels it moves the
// matrix twice more than a fused softmax; it pays where LS and GS are fused into the neighbouring
// GEMMs.
#include "ir/LayerMarks.h"
#include "passes/Rewrites.h"

namespace weft {

GlobalScalingOp decomposeSoftmax(SoftmaxOp softmax, int64_t tile) {
  BuilderOfLayer builder(softmax);
  const mlir::Location location = softmax.getLoc();
  const auto named = [&](llvm::StringRef name) -> mlir::Location {
    return mlir::NameLoc::get(builder.getStringAttr(name), location);
  };
  const int64_t axis = static_cast<int64_t>(softmax.getAxis());
  auto local = LocalSoftmaxOp::create(builder, named("exponentials, maxima, sums"), softmax.getX(),
                                      axis, tile);
  auto factors = ReduceSubvectorsOp::create(builder, named("factors"), local.getMaxima(),
                                            local.getSums(), axis);
  auto scaled = GlobalScalingOp::create(builder, location, local.getExponentials(),
                                        factors.getResult(), axis, tile);
  softmax.getResult().replaceAllUsesWith(scaled.getResult());
  softmax.erase();
  return scaled;
}

}  // namespace weft
