// THE ordered list of graph passes. Each line says why it stands after the one before it.
// `differentiate` stands before all of them where it runs (weft --train): it needs ops that have
// derivatives, and the rewrites apply to the backward pass, too. `pack-sequences` stands before
// that (weft --ragged), so that gradients are packed, too.
#include "passes/Passes.h"
#include "passes/Rewrites.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

namespace weft {

const std::vector<PipelineStep> &graphPipeline() {
  static const std::vector<PipelineStep> steps = {
      {"fold-scale", "first: a factor inside a contraction is part of what stacking compares"},
      {"stack-projections",
       "after fold-scale: a scale between a projection and its bias would hide the bias"},
      {"commute-gates",
       "before all rewrites of a softmax, which take casts and a dropout alone between it and its "
       "contraction; weft --train runs it before differentiate, and it leaves differentiated "
       "graphs alone"},
      {"recompute-attention",
       "before decompose-softmax, which leaves no softmax to its derivative: those that the "
       "backward pass reads fold here"},
      {"decompose-softmax", "after stacking only by convention: the two touch different ops"},
      {"commute-scaling", "after decompose-softmax, which makes the scalings"},
      {"fold-softmax", "after commute-scaling, whose contractions of sub-vectors it folds"},
      {"bound-document-masks",
       "after fold-softmax and recompute-attention: masks of folds alone have bounds"},
      {"recompose-softmax",
       "in place of decompose-softmax and the fold behind it: where those run, no softmax is left"},
      {"decompose-norms",
       "after stacking, whose groups are found by one input: y stays one tensor, so that either "
       "order would do"},
      {"mask-unused-tokens",
       "after all that makes or joins ops over packed tokens: a mask between two of them would "
       "hide "
       "one from the other"},
      {"implied-masks",
       "after fold-scale, which would take the scale into the product; what the paper counts as a "
       "dropout is one until here"},
      {"fuse",
       "last: it proposes over the ops that the rewrites leave, and op numbers must not change "
       "after it"},
  };
  return steps;
}

void registerGraphPipeline() {
  mlir::PassPipelineRegistration<>(
      "graph-pipeline", "All graph passes with their defaults, in the order of Pipeline.cpp",
      [](mlir::OpPassManager &manager) {
        std::string text;
        for (const PipelineStep &step : graphPipeline())
          text += (text.empty() ? "" : ",") + std::string(step.pass);
        (void)mlir::parsePassPipeline("weft.graph(" + text + ")", manager);
      });
}

}  // namespace weft
