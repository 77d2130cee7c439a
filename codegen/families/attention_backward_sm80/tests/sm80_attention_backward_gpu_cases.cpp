// Cases of the backward pass of fused attention by mma.sync for the GPU: those of all families
// (BackwardCases.h), and
//   attention-backward-tf32  of f32 read as tf32
#include "codegen/families/attention_backward/tests/BackwardCases.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft::gputest {
namespace {

const DrawnFamily sm80 = DrawnFamily::fromSm80(Sm80AttentionBackwardKnobs{});

void addKinds(Collector &collect) { addAttentionBackwards(collect, sm80); }

/// Of f32 that is read as tf32; also over packed tokens.
void addTf32(Collector &collect) {
  KindsInTurn turn(4);
  for (const AttentionExtents &one : backwardLengths) {
    turn.nextLength();
    for (const auto &[headDim, valueDim] : headWidths) {
      turn.nextWidth();
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const std::vector<Kernel> kinds = backwardsOf(extents, DType::f32);
      for (size_t kind = 0; kind < kinds.size(); ++kind)
        if (turn.takes(kind))
          for (const Kernel kernel = samples::inTf32(kinds[kind]);
               const Configuration &configuration : collect.drawFamily(kernel, sm80, 1))
            collect.add("attention-backward-tf32", kernel, nameOf(samples::tf32Types),
                        configuration);
    }
  }
  for (const AttentionExtents &one : packedExtents)
    for (const auto &[headDim, valueDim] : packedWidths) {
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const Kernel kernel =
          samples::inTf32(samples::packedBackward(extents, DType::f32, true, true));
      for (const Configuration &configuration : collect.drawFamily(kernel, sm80, 1))
        collect.add("attention-backward-packed", kernel, nameOf(samples::tf32Types), configuration);
    }
}

void addPacked(Collector &collect) { addPackedBackwards(collect, sm80); }

/// Adversarial scores, inputs that nothing may read, and drawn ones.
void addAdversarial(Collector &collect) {
  addHardAttentionBackwards(collect, sm80);
  addUnreadAttentionBackwards(collect, sm80);
  addDrawnAttentionBackwards(collect, sm80, 256);
}

const CaseRegistration registered("attention-backward-sm80", addKinds);
const CaseRegistration tf32Registered("attention-backward-sm80 tf32", addTf32);
const CaseRegistration packedRegistered("attention-backward-sm80 packed", addPacked);
const CaseRegistration adversarialRegistered("attention-backward-sm80 adversarial", addAdversarial);

}  // namespace
}  // namespace weft::gputest
