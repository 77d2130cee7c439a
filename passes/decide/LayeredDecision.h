// Several layers, decided part by part: each distinct part by itself, the whole from what was
// decided of the parts (JoinedDecision.h), within the limit of memory, which is of the whole; and
// where the layers are cut. No MLIR.
//
// Invariant: a part is decided as its graph would be by itself, but for a trained part's limit of
// memory: what layers save for their backward passes adds up, so that no part alone can be held
// to it.
#pragma once

#include "passes/decide/Decide.h"
#include "passes/decide/JoinedDecision.h"
#include "passes/decide/MemoryFrontier.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::decision {

/// Of how many layers the place to cut is chosen: the first ones, of which one has neighbours on
/// both sides where there are as many.
size_t layersToCompare(size_t layers);
/// A place of a layer where the graph could be cut, the same one in every layer.
struct CutPlace {
  int64_t tensors = 0;  ///< that cross it
  int64_t bytes = 0;    ///< of all that is read across
  size_t lost = 0;      ///< fused candidates that it cuts
};
/// The number of the place that loses the fewest candidates; of these the one with the fewest bytes
/// across, and of these the first. Of places that more than `fewestTensors` + 1 tensors cross there
/// is none: they are inside of attention. 0 where no place is left.
size_t chooseCut(const std::vector<CutPlace> &places, int64_t fewestTensors);

/// The whole, put together from what was decided of its parts.
struct JoinedQuestion {
  Problem problem;  ///< of one variant
  Options options;  ///< with the limit of memory
  std::vector<PlacedPart> parts;
};

/// Layers as whoever has their graphs asks for them.
struct LayeredQuestion {
  size_t parts = 0;                ///< distinct ones
  bool isTrained = false;          ///< forward and backward pass
  bool choosesRecomputed = false;  ///< what is saved may be computed again, as decided
  std::function<Question(size_t part)> ask;
  /// So many sets of tensors, in all layers alike, could be computed again instead of saved.
  size_t recomputedSets = 0;
  /// What of a set a part has; may be nothing.
  std::function<std::vector<std::string>(size_t set, size_t part)> namesOf;
  /// The part with these computed again, and nothing else.
  std::function<Question(size_t part, const std::vector<std::string> &names)> askRecomputing;
  /// Takes what was decided of a part; again, in place of that, where a part is decided again.
  std::function<void(size_t part, Decision)> take;
  /// The whole of the decisions that were taken.
  std::function<JoinedQuestion()> join;
};

/// The decision of the whole, every part's handed to `take`. Where the plan of trained layers takes
/// more than Options::maxMemory, all layers alike compute one set again, the one with the fastest
/// plan that fits. Without a decision where decide() has none of a part, and where the whole takes
/// more than Options::maxMemory: Error(unsupported) with the fewest bytes that were found.
Expected<Decision> decideLayers(const LayeredQuestion &layers);

/// The plans that decideLayers() chooses from, whatever they take: without recomputation, and then
/// with each set. FrontierPoint::index: 0, and the set's number from 1.
Expected<std::vector<FrontierPoint>> layeredPoints(const LayeredQuestion &layers);

}  // namespace weft::decision
