// Bytes that the graph of a compilation moves after each phase; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/account/Operators.h"
#include "passes/configure/Families.h"
#include "tools/driver/ProfileModel.h"

#include <algorithm>

namespace weft::driver {

namespace {

PhaseBytes bytesAfter(Phase phase, mlir::Operation *graph, const MovedShare &share) {
  const Dataflow flow = describeGraph(graph).flow;
  const auto computes = [](const FlowOp &op) {
    return op.operatorClass != OperatorClass::movement;
  };
  return {.phase = std::string(nameOf(phase)),
          .ops = size_t(std::count_if(flow.ops.begin(), flow.ops.end(), computes)),
          .bytes = separateBytes(flow, share)};
}

}  // namespace

double Compilation::movedShare(const Kernel &kernel) const {
  if (!expectedFill()) return 1;
  const bool isLoop = kernel.operatorClass() != OperatorClass::contraction;
  const std::optional<Kernel> less = shortenedKernel(kernel, *expectedFill(), isLoop);
  return less ? double(less->necessaryBytes()) / double(kernel.necessaryBytes()) : 1;
}

double Compilation::movedShare(const Dataflow &flow, const std::vector<int> &ops) const {
  if (!expectedFill() || expectedFill()->isFull()) return 1;
  try {
    return movedShare(bindKernel(flow, ops).kernel);
  } catch (const Error &) {  // several axes of one operand are one: no such kernel
    return 1;
  }
}

PhaseBytes Compilation::bytesAfter(Phase phase, mlir::Operation *graph) const {
  return driver::bytesAfter(phase, graph, [&](const Dataflow &flow, const std::vector<int> &ops) {
    return movedShare(flow, ops);
  });
}

void Compilation::noteBytes(Phase phase) {
  importedBytes.push_back(bytesAfter(phase, graphOf(*imported.front().module)));
}

Account Compilation::account(const ProposedVariant &variant) const {
  mlir::Operation *graph = graphOf(mlir::ModuleOp(variant.module.get()));
  Account result{.flow = variant.counted,
                 .phases = importedBytes,
                 .fill = expectedFill().value_or(ExpectedFill())};
  if (isLayered()) result.phases.push_back(bytesAfter(Phase::attention, graph));
  if (isLayered() || firstPhase > Phase::attention) return result;
  const ProposedVariant *nearest = nullptr;  // the variant before attention: of those whose
                                             // rewrites begin this one's, the longest
  std::vector<ProposedVariant> stacked;
  for (const Variant &one : imported)
    for (ProposedVariant &proposed : rewriteOne(one, choices, false, firstPhase, Phase::algebra))
      stacked.push_back(std::move(proposed));
  for (const ProposedVariant &proposed : stacked) {
    const auto &rewrites = proposed.rewrites;
    const bool begins = rewrites.size() <= variant.rewrites.size() &&
                        std::equal(rewrites.begin(), rewrites.end(), variant.rewrites.begin());
    if (begins && (!nearest || rewrites.size() > nearest->rewrites.size())) nearest = &proposed;
  }
  if (nearest)
    result.phases.push_back(
        bytesAfter(Phase::algebra, graphOf(mlir::ModuleOp(nearest->module.get()))));
  result.phases.push_back(bytesAfter(Phase::attention, graph));
  return result;
}

}  // namespace weft::driver
