// The configurations of tensor-core contractions on sm_90a.
#pragma once

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

#include <optional>
#include <vector>

namespace weft {

SpaceOrRejection sm90GemmSpace(const Kernel &kernel, const Device &device);
/// Family::severalStrides.
std::optional<ConfigurationSpace> sm90SeveralStridesSpace(const Kernel &kernel,
                                                          const Device &device,
                                                          const FixedLayouts *fixed);
/// Family::isUseful: single-consumer tiles take some orientations alone, and what an epilogue
/// leaves of the registers depends on layouts.
bool isUsefulSm90Tile(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs);

/// Tiles whose slices blocks share in stream-K runs (Sm90GemmKnobs::streamK), for a
/// contraction under layouts of gemm-sm90, best first by the model. No space has them:
/// they are measured (`weft profile`) and chosen by their measurements.
std::vector<Sm90GemmKnobs> streamKTiles(const Kernel &kernel, const LayoutTuple &layouts,
                                        const Device &device);

}  // namespace weft
