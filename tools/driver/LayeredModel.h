// A model of several layers, decided part by part: the graph is cut between layers where the fewest
// kernels are lost, every distinct part is decided once (passes/decide/Decide.h), with the tensors
// at the cuts in the caller's order on both sides, and what was chosen is joined to one plan.
//
// Invariant: the plan of N layers is a function of the graph, the flags and the prices, and its
// time is the sum of its parts'.
#pragma once

#include "passes/decide/MemoryFrontier.h"
#include "tools/driver/Compilation.h"

#include <memory>
#include <string>
#include <vector>

namespace weft::driver {

/// A part that was decided, and where it stands.
struct DecidedPart {
  std::unique_ptr<Compilation> compilation;
  std::vector<ProposedVariant> proposed;
  decision::Decision decision;
  struct Place {
    std::vector<size_t> ops;             ///< of each of its ops: of the whole's chosen graph
    int64_t shift = 0;                   ///< of its layers' numbers
    std::vector<std::string> arguments;  ///< names in the whole, by position
  };
  std::vector<Place> places;

  const ProposedVariant &chosen() const { return proposed[decision.best().index]; }
};

/// What was decided of a model, whole or by parts.
struct DecidedModel {
  std::vector<ProposedVariant> proposed;  ///< decision speaks of these
  decision::Problem problem;              ///< of a model without parts
  decision::Options options;
  decision::Decision decision;
  std::vector<DecidedPart> parts;  ///< empty: decided whole
  bool isByParts() const { return !parts.empty(); }
};

/// Proposes and decides. Of a model of several layers, Error(unsupported) for choices that name ops
/// or tensors, or that ask more of the whole than the sum of its parts.
DecidedModel decideModel(const Compilation &compilation, Phase first,
                         const decision::Measure &measure = {}, int plansToMeasure = 0);

/// Of several layers, the plans that --max-memory chooses from (decision::layeredPoints).
std::vector<decision::FrontierPoint> layeredPoints(const Compilation &compilation);

}  // namespace weft::driver
