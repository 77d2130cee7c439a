// Cutting a differentiated graph between layers; see TrainingLayers.h.
#include "passes/layers/TrainingLayers.h"

#include "passes/Passes.h"
#include "passes/SavedTensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

namespace weft {

PassOrder::PassOrder(GraphOp graph, const GradientOrigins &origins) : numbered(numberedOps(graph)) {
  const auto last = std::ranges::find(numbered, lastForwardOp(graph));
  forward = last == numbered.end() ? 0 : size_t(last - numbered.begin()) + 1;
  std::map<mlir::Operation *, size_t> numberOf;
  for (size_t op = 0; op < forward; ++op) numberOf[numbered[op]] = op;
  end = forward;
  for (size_t op = 0; op < numbered.size(); ++op) {
    const auto origin = origins.find(numbered[op]);
    if (op < forward || origin == origins.end()) {
      originOf.push_back(op < forward || op == 0 ? op : originOf.back());
      continue;
    }
    originOf.push_back(numberOf.at(origin->second));
    end = op + 1;
  }
}

size_t PassOrder::backwardBorder(size_t forwardOp) const {
  for (size_t op = forward; op < end; ++op)
    if (originOf[op] < forwardOp) return op;
  return end;
}

std::vector<size_t> partsOfOps(const PassOrder &order, const std::vector<TrainingCut> &cuts) {
  const std::vector<mlir::Operation *> &ops = order.ops();
  std::vector<size_t> parts;
  std::map<mlir::Operation *, size_t> backwardParts;
  std::vector<size_t> unplaced;  // updates that read arguments alone
  for (size_t op = 0; op < ops.size(); ++op) {
    const bool isForward = op < order.forwardOps();
    size_t part = size_t(std::ranges::count_if(cuts, [&](const TrainingCut &cut) {
      return isForward ? cut.forward <= op : op < cut.backward;
    }));
    if (op >= order.backwardEnd()) {
      std::optional<size_t> read;
      for (mlir::Value operand : ops[op]->getOperands())
        if (const auto found = backwardParts.find(operand.getDefiningOp());
            found != backwardParts.end())
          read = std::min(read.value_or(found->second), found->second);
      part = read.value_or(part);
      if (!read) unplaced.push_back(op);
    }
    if (!isForward) backwardParts[ops[op]] = part;
    parts.push_back(part);
  }
  for (const size_t op : std::views::reverse(unplaced)) {
    std::optional<size_t> reads;
    for (mlir::Operation *user : ops[op]->getUsers())
      if (const auto found = backwardParts.find(user); found != backwardParts.end())
        reads = std::min(reads.value_or(found->second), found->second);
    backwardParts[ops[op]] = parts[op] = reads.value_or(parts[op]);
  }
  return parts;
}

std::vector<LayerPart> cutTraining(GraphOp graph, const PassOrder &order,
                                   const std::vector<TrainingCut> &cuts) {
  const std::vector<size_t> partOfOp = partsOfOps(order, cuts);
  std::vector<std::vector<mlir::Operation *>> ops(cuts.size() + 1);
  for (size_t op = 0; op < partOfOp.size(); ++op) ops[partOfOp[op]].push_back(order.ops()[op]);
  std::vector<LayerPart> parts;
  for (const std::vector<mlir::Operation *> &ofPart : ops)
    if (!ofPart.empty()) parts.push_back(partOf(graph, ofPart));
  return parts;
}

}  // namespace weft
