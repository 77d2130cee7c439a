// Cuts of training graphs; see LayeredTraining.h.
#include "tools/driver/LayeredTraining.h"

#include "kernel/LayerNames.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/layers/TrainingLayers.h"

#include "ir/Types.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace weft::driver {
namespace {

constexpr size_t mostLayers = 3;

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
    if (layers.begins.size() > 1) choose(result);
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
    const size_t count = std::min(mostLayers, layers.begins.size());
    std::vector<TrainingCut> around;
    const size_t end = count < layers.begins.size() ? layers.begins[count] : layers.end;
    for (const size_t border : {layers.begins.front(), end}) around.push_back(cutAt(border, {}));
    const std::vector<size_t> partOfOp = partsOfOps(order, around);
    std::vector<mlir::Operation *> ops;
    for (size_t op = 0; op < partOfOp.size(); ++op)
      if (partOfOp[op] == 1 && op < order.backwardEnd()) {
        neighbours.push_back(op);
        ops.push_back(order.ops()[op]);
      }
    const Compilation alone(compilation, partOf(graph, ops).module);
    for (const FusionCandidate &candidate : alone.unchangedFusions().candidates) {
      const size_t first = neighbours[size_t(candidate.ops.front())],
                   last = neighbours[size_t(candidate.ops.back())];
      if (first != last) candidates.emplace_back(first, last);
    }
  }

  size_t candidatesAcross(size_t op) const {
    return size_t(std::ranges::count_if(candidates, [&](const auto &candidate) {
      return candidate.first < op && candidate.second >= op;
    }));
  }

  /// Tensors that ops on one side of a cut compute and ops on the other side read.
  Crossing crossing(const TrainingCut &cut) const {
    const auto isBefore = [&](size_t op) {
      return op < order.forwardOps() ? op < cut.forward : op >= cut.backward;
    };
    std::set<mlir::Operation *> before, after;
    for (const size_t op : neighbours) (isBefore(op) ? before : after).insert(order.ops()[op]);
    Crossing found;
    for (const auto &[side, other] : {std::pair(&before, &after), std::pair(&after, &before)})
      for (mlir::Operation *op : *side)
        for (mlir::Value result : op->getResults()) {
          if (llvm::none_of(result.getUsers(),
                            [&](mlir::Operation *user) { return other->contains(user); }))
            continue;
          int64_t bytes = sizeOf(toDType(result.getType()).value_or(DType::f32));
          for (const int64_t extent : extents(result.getType())) bytes *= extent;
          ++found.tensors;
          found.bytes += bytes;
        }
    return found;
  }

  void choose(CutTraining &result) {
    takeNeighbours();
    const size_t second = layers.begins[1];
    const size_t backwardOps =
        order.backwardBorder(layers.begins[0]) - order.backwardBorder(second);
    const size_t lostForward = chooseOne(layers.opsOfLayer, &Rotation::forward, second);
    const size_t lostBackward = chooseOne(backwardOps, &Rotation::backward, second);
    const TrainingCut at = cutAt(second, rotation);
    result.lost = lostForward + lostBackward;
    result.behind = nameBefore(at.forward);
    result.behindGradient = nameBefore(at.backward);
  }

  /// Tries one of both places within a layer; gives the candidates that the best one loses.
  size_t chooseOne(size_t places, size_t Rotation::*place, size_t border) {
    std::vector<std::pair<Crossing, size_t>> tried;
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (size_t count = 0; count < places; ++count) {
      Rotation rotated = rotation;
      rotated.*place = count;
      const TrainingCut at = cutAt(border, rotated);
      const Crossing found = crossing(at);
      const size_t op = place == &Rotation::forward ? at.forward : at.backward;
      tried.emplace_back(found, candidatesAcross(op));
      fewest = std::min(fewest, found.tensors);
      if (getenv("WEFT_CUTS"))
        fprintf(stderr, "%zu: lost %zu, %ld tensors %ld bytes behind %s\n", count,
                tried.back().second, found.tensors, found.bytes, nameBefore(op).c_str());
    }
    std::optional<std::tuple<size_t, int64_t, size_t>> best;
    for (size_t count = 0; count < tried.size(); ++count) {
      const auto &[found, lost] = tried[count];
      if (found.tensors > fewest + 1) continue;
      const std::tuple rank(lost, found.bytes, count);
      if (!best || rank < *best) best = rank;
    }
    rotation.*place = std::get<2>(*best);
    return std::get<0>(*best);
  }

  std::string nameBefore(size_t op) const {
    return withoutLayers(writtenName(order.ops()[op - 1]->getResult(0)));
  }

  const Compilation &compilation;
  GraphOp graph;
  const LayerPositions &layers;
  PassOrder order;
  Rotation rotation;
  std::vector<size_t> neighbours;                     ///< numbers of ops of the first layers
  std::vector<std::pair<size_t, size_t>> candidates;  ///< their first and last ops
};

}  // namespace

CutTraining cutTrainingGraph(const Compilation &compilation, const LayerPositions &layers) {
  return TrainingCutter(compilation, layers).cut();
}

}  // namespace weft::driver
