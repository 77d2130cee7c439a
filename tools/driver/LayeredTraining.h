// Where the training graph of several layers is cut: LayeredModel.h decides its parts one by one,
// each with forward and backward pass together.
//
// Invariant: every part has forward ops, and the cut is the same one behind every layer.
#pragma once

#include "tools/driver/Compilation.h"

#include "passes/layers/Layers.h"

#include <string>
#include <vector>

namespace weft::driver {

/// The parts of a differentiated graph, and what the cuts between them cost.
struct CutTraining {
  std::vector<LayerPart> parts;
  size_t lost = 0;             ///< fused candidates that a cut crosses
  std::string behind;          ///< the tensor that is computed last in front of it, without layer
  std::string behindGradient;  ///< the same of the backward pass
};

/// The cut that loses the fewest fused candidates of three layers; of these the one with the fewest
/// bytes across, and the nearest to the layers' border. A cut that more tensors cross than one
/// beside the border needs is none: it would stand inside of attention.
CutTraining cutTrainingGraph(const Compilation &compilation, const LayerPositions &layers);

}  // namespace weft::driver
