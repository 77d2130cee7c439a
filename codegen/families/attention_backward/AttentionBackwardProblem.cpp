// An attention and three more tensors; see AttentionBackwardProblem.h.
#include "codegen/families/attention_backward/AttentionBackwardProblem.h"

#include "kernel/Error.h"
#include "kernel/LastLayouts.h"

#include <algorithm>

namespace weft {

AttentionRegion attentionOf(const Kernel &kernel, const AttentionBackwardRegion &region) {
  std::optional<PackedTokens> packed;
  if (const std::optional<PackedGradients> &own = region.packed)
    packed = PackedTokens{.input = own->input,
                          .offsets = own->offsets,
                          .sequences = own->sequences,
                          .positions = own->positions,
                          .q = own->q,
                          .k = own->k,
                          .v = own->v,
                          .output = own->dOutput};
  const auto inputOf = [&](ValueId value) {
    return size_t(std::ranges::find(kernel.inputs, value) - kernel.inputs.begin());
  };
  return {.contraction = region.scoresContraction,
          .fold = region.probability,
          .scoreOps = region.scoreOps,
          .q = region.q,
          .k = region.k,
          .v = region.v,
          .qInput = inputOf(region.q),
          .kInput = inputOf(region.k),
          .vInput = inputOf(region.v),
          .scores = region.scores,
          .folded = kernel.body[region.probability].operands[0],
          .output = region.dOutput,
          .scale = region.scoresScale,
          .hasDropout = region.hasDropout,
          .readsTf32 = region.readsTf32,
          .inputs = region.inputs,
          .packed = packed,
          .keyAxis = region.keyAxis,
          .headDim = region.headDim,
          .valueDim = region.valueDim,
          .queries = region.queries,
          .batch = region.batch};
}

double storedScoreSeconds(const AttentionBackwardProblem &problem, const Device &device) {
  constexpr double bandwidth = 40e9, sectorBytes = 2;  // that are written for a byte
  if (!problem.dScores) return 0;
  const AttentionProblem &attention = problem.attention;
  return double(attention.heads) * double(attention.queries) * double(attention.keys) *
         double(sizeOf(attention.operandType)) * sectorBytes / bandwidth / device.multiprocessors;
}

Expected<AttentionBackwardProblem> attentionBackwardProblem(const Kernel &kernel,
                                                            const AttentionBackwardRegion &region,
                                                            const Configuration &configuration) {
  const Expected<AttentionProblem> attention =
      attentionProblem(kernel, attentionOf(kernel, region), configuration);
  if (!attention) return Unexpected(attention.error());
  AttentionBackwardProblem problem{.attention = *attention};
  const auto tensor = [&](ValueId value, AxisId rowAxis, AxisId columnAxis) {
    return attentionTensor(kernel, configuration, *attention, value, rowAxis, columnAxis);
  };
  const PackedGradients rows = region.packed.value_or(PackedGradients{
      .dQ = attention->queryAxis, .dK = attention->keyAxis, .dV = attention->keyAxis});
  problem.dQ = tensor(region.dQ, rows.dQ, attention->headDimAxis);
  problem.dK = tensor(region.dK, rows.dK, attention->headDimAxis);
  problem.dV = tensor(region.dV, rows.dV, attention->valueDimAxis);
  if (region.storedScores >= 0)
    problem.dScores = tensor(region.storedScores, attention->queryAxis, attention->keyAxis);
  return problem;
}

const Expected<AttentionBackwardProblem> &keptAttentionBackwardProblem(
    const Kernel &kernel, const AttentionBackwardRegion &region,
    const Configuration &configuration) {
  thread_local LastLayouts<Expected<AttentionBackwardProblem>> last;
  return last.of([&] { return attentionBackwardProblem(kernel, region, configuration); }, kernel,
                 configuration);
}

std::string attentionBackwardTypeRejection(const Kernel &kernel,
                                           const AttentionBackwardRegion &region,
                                           const Device &device, bool takesTf32) {
  const DType type = kernel.values[size_t(region.q)].dtype;
  std::vector<ValueId> gradients = {region.dQ, region.dK, region.dV};
  if (region.storedScores >= 0) gradients.push_back(region.storedScores);
  if (region.storedScores >= 0 && type == DType::f32)
    return fmt::format("'{}' is stored, of f32; stored gradients of scores are f16 or bf16",
                       kernel.values[size_t(region.storedScores)].name);
  for (const ValueId value : gradients)
    if (const Value &gradient = kernel.values[size_t(value)]; gradient.dtype != type)
      return fmt::format("'{}' is {}, queries are {}; one element type is taken", gradient.name,
                         nameOf(gradient.dtype), nameOf(type));
  return attentionTypeRejection(kernel, attentionOf(kernel, region), device, takesTf32);
}

}  // namespace weft
