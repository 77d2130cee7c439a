// Cuts of training graphs; see LayeredTraining.h.
#include "tools/driver/LayeredTraining.h"

#include "kernel/LayerNames.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/decide/LayeredDecision.h"
#include "passes/layers/TrainingLayers.h"

#include "ir/Types.h"

#include <algorithm>
#include <limits>
#include <map>

namespace weft::driver {
namespace {

/// Ops by which a cut's forward and backward place stand behind the border of the layers.
struct Rotation {
  size_t forward = 0, backward = 0;
};

class TrainingCutter {
public:
  TrainingCutter(const Compilation &compilation, const LayerPositions &layers)
      : compilation(compilation),
        graph(*compilation.graph().getOps<GraphOp>().begin()),
        layers(layers),
        order(graph, compilation.gradientOrigins()) {}

  CutTraining cut() {
    CutTraining result;
    if (layers.begins.size() > 1) rotate(result);
    result.parts = cutTraining(graph, order, cuts());
    return result;
  }

private:
  TrainingCut cutAt(size_t forwardOp, const Rotation &rotated) const {
    return {.forward = std::min(forwardOp + rotated.forward, order.forwardOps()),
            .backward =
                std::min(order.backwardBorder(forwardOp) + rotated.backward, order.backwardEnd())};
  }

  /// Around every layer, or as far behind every border. The ends of the graph are no cuts.
  std::vector<TrainingCut> cuts() const {
    std::vector<TrainingCut> all;
    if (layers.begins.size() == 1) return all;  // nothing repeats, and a cut may lose kernels
    std::vector<size_t> borders = layers.begins;
    if (rotation.forward == 0) borders.push_back(layers.end);
    for (const size_t border : borders)
      if (const TrainingCut one = cutAt(border, rotation);
          one.forward > 0 && one.forward < order.forwardOps())
        all.push_back(one);
    return all;
  }

  /// The first layers alone.
  void takeNeighbours() {
    const size_t count = decision::layersToCompare(layers.begins.size());
    std::vector<TrainingCut> around;
    const size_t end = count < layers.begins.size() ? layers.begins[count] : layers.end;
    for (const size_t border : {layers.begins.front(), end}) around.push_back(cutAt(border, {}));
    const std::vector<size_t> partOfOp = partsOfOps(order, around);
    std::vector<mlir::Operation *> ops;
    for (size_t op = 0; op < partOfOp.size(); ++op)
      if (partOfOp[op] == 1 && op < order.backwardEnd()) {
        neighbours.push_back(op);
        ops.push_back(order.ops()[op]);
        numberOf[order.ops()[op]] = op;
      }
    const Compilation alone(compilation, partOf(graph, ops).module);
    const FusionResult fusions = alone.unchangedFusions();
    for (const FusionCandidate &candidate : fusions.candidates) {
      std::vector<mlir::Operation *> fused;
      for (const int op : candidate.ops) fused.push_back(order.ops()[neighbours[size_t(op)]]);
      if (fused.size() > 1) candidates.push_back(std::move(fused));
    }
  }

  bool isBefore(mlir::Operation *op, const TrainingCut &cut) const {
    const size_t number = numberOf.at(op);
    return number < order.forwardOps() ? number < cut.forward : number >= cut.backward;
  }

  /// Whether an op of these reads on one side of a cut what another one of these computes on the
  /// other. Reductions that share a kernel and no tensor may be cut apart.
  bool readsAcross(const std::vector<mlir::Operation *> &fused, const TrainingCut &cut) const {
    return std::ranges::any_of(fused, [&](mlir::Operation *op) {
      return llvm::any_of(op->getOperands(), [&](mlir::Value operand) {
        mlir::Operation *computed = operand.getDefiningOp();
        return std::ranges::count(fused, computed) > 0 &&
               isBefore(computed, cut) != isBefore(op, cut);
      });
    });
  }

  /// Tensors that ops on one side of a cut compute and ops of the same pass on the other side read,
  /// and the bytes of all that either pass reads across.
  Crossing crossing(const TrainingCut &cut, bool ofForward) const {
    Crossing found;
    for (const size_t op : neighbours)
      for (mlir::Value result : order.ops()[op]->getResults()) {
        bool isRead = false, isReadInPass = false;
        for (mlir::Operation *user : result.getUsers()) {
          const auto number = numberOf.find(user);
          if (number == numberOf.end() || isBefore(user, cut) == isBefore(order.ops()[op], cut))
            continue;
          isRead = true;
          isReadInPass |= (op < order.forwardOps()) == ofForward &&
                          (number->second < order.forwardOps()) == ofForward;
        }
        if (!isRead) continue;
        int64_t bytes = sizeOf(toDType(result.getType()).value_or(DType::f32));
        for (const int64_t extent : extents(result.getType())) bytes *= extent;
        found.tensors += isReadInPass;
        found.bytes += bytes;
      }
    return found;
  }

  void rotate(CutTraining &result) {
    takeNeighbours();
    const size_t second = layers.begins[1];
    const size_t backwardOps = layers.opsOfLayer > 0 ? order.backwardBorder(layers.begins[0]) -
                                                           order.backwardBorder(second)
                                                     : 1;
    const size_t lostForward = rotateOne(layers.commonPlaces(), &Rotation::forward, second);
    const size_t lostBackward = rotateOne(backwardOps, &Rotation::backward, second);
    const TrainingCut at = cutAt(second, rotation);
    result.lost = lostForward + lostBackward;
    result.behind = nameBefore(at.forward);
    result.behindGradient = nameBefore(at.backward);
  }

  /// Of one pass, the place within a layer that is chosen (decision::chooseCut); gives the
  /// candidates that it loses.
  size_t rotateOne(size_t count, size_t Rotation::*place, size_t border) {
    const bool ofForward = place == &Rotation::forward;
    std::vector<decision::CutPlace> places;
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (size_t ops = 0; ops < count; ++ops) {
      Rotation rotated = rotation;
      rotated.*place = ops;
      const TrainingCut at = cutAt(border, rotated);
      const Crossing found = crossing(at, ofForward);
      const size_t lost = size_t(std::ranges::count_if(candidates, [&](const auto &candidate) {
        return (numberOf.at(candidate.front()) < order.forwardOps()) == ofForward &&
               readsAcross(candidate, at);
      }));
      places.push_back({.tensors = found.tensors, .bytes = found.bytes, .lost = lost});
      fewest = std::min(fewest, found.tensors);
    }
    if (places.empty()) return 0;  // no backward pass of these layers
    rotation.*place = decision::chooseCut(places, fewest);
    return places[rotation.*place].lost;
  }

  std::string nameBefore(size_t op) const {
    return withoutLayers(writtenName(order.ops()[op - 1]->getResult(0)));
  }

  const Compilation &compilation;
  GraphOp graph;
  const LayerPositions &layers;
  PassOrder order;
  Rotation rotation;
  std::vector<size_t> neighbours;                          ///< numbers of ops of the first layers
  std::map<mlir::Operation *, size_t> numberOf;            ///< of these
  std::vector<std::vector<mlir::Operation *>> candidates;  ///< of several of these ops each
};

}  // namespace

CutTraining cutTrainingGraph(const Compilation &compilation, const LayerPositions &layers) {
  return TrainingCutter(compilation, layers).cut();
}

}  // namespace weft::driver
