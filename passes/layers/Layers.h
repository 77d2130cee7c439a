// A graph of several layers, cut into parts that are decided one by one, and put together again
// from what was chosen of each. Layers are told by the marks of their ops (ir/LayerMarks.h); names
// that begin with a layer's (kernel/LayerNames.h) are those of its tensors alone.
//
// Invariant: parts that are equal but for the numbers of their layers, in marks and in names, have
// equal texts once these are shifted, so that one decision serves them all.
#pragma once

#include "ir/Weft.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft {

/// Where the layers of a graph begin, as numbers of ops (numberedOps).
struct LayerPositions {
  std::vector<size_t> begins;  ///< one a layer, ascending
  size_t end = 0;              ///< behind the last layer, as long as the others
  size_t opsOfLayer = 0;       ///< 0: layers have different ops
  /// Places in a layer that all layers have: where they differ, their beginnings alone.
  size_t commonPlaces() const { return opsOfLayer > 0 ? opsOfLayer : 1; }
};
/// Of the forward pass. Layers are alike whose ops are of the same kinds in the same order. Ops
/// that the last one has beyond those stand behind the layers: they hand its result out, unpacked.
/// Throws Error(checkFailed) where layers are not in order.
LayerPositions layerPositions(GraphOp graph);

/// Tensors that are computed in front of an op and read at it or behind it.
struct Crossing {
  int64_t tensors = 0, bytes = 0;
};
Crossing crossingAt(GraphOp graph, size_t op);

/// The ops between two cuts as a graph. Its arguments are first the activations, those that earlier
/// parts compute and those of the whole, by first use and called "carried1", "carried2", ..., so
/// that the first layer is like the others; then integers and parameters of the whole under their
/// names, those of no layer first. Its results are what later parts read or the whole returns.
struct LayerPart {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t firstLayer = 0;   ///< of its ops; 0: of no layer
  int64_t firstStream = 0;  ///< of dropout in the whole; the part's own streams begin with 0
  std::vector<std::string> arguments, results;  ///< names in the whole, by position
};
/// The text by which equal parts are found: with marks and names of its layers as if these were the
/// first. `print`: how graphs are written.
std::string shiftedText(const LayerPart &part,
                        const std::function<std::string(mlir::ModuleOp)> &print);
/// Of these ops, in the order of the whole. What they hand to ops of the backward pass or of the
/// update, or to the caller from there, is marked as the whole marks such results.
LayerPart partOf(GraphOp whole, const std::vector<mlir::Operation *> &ops);
/// One part for each range between neighbouring cuts, and those before the first and behind the
/// last; ranges without ops are left out. `cuts`: numbers of ops, ascending.
std::vector<LayerPart> cutGraph(GraphOp graph, const std::vector<size_t> &cuts);

/// What stands in the place of a part: another graph of its arguments and results, with its layers
/// so many further.
struct JoinedPart {
  mlir::ModuleOp module;
  std::vector<std::string> arguments, results;  ///< names in the whole, by position
  int64_t shift = 0;
  int64_t firstStream = 0;
};
/// A graph of the whole's arguments and results that computes what its parts compute: forward in
/// order, then backward from the last part to the first, then updates likewise. `numbers`, if any,
/// gets for each part the numbers of its ops in the whole. Throws Error(checkFailed) where a part
/// reads what nothing before it computes.
mlir::OwningOpRef<mlir::ModuleOp> joinGraphs(GraphOp whole, const std::vector<JoinedPart> &parts,
                                             std::vector<std::vector<size_t>> *numbers = nullptr);

}  // namespace weft
