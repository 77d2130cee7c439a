// The configurations of tensor-core contractions on sm_90a.
#pragma once

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

#include <optional>
#include <vector>

namespace weft {

Expected<ConfigurationSpace, Reason> sm90GemmSpace(const Kernel &kernel, const Device &device);
/// Family::severalStrides.
std::optional<ConfigurationSpace> sm90SeveralStridesSpace(const Kernel &kernel,
                                                          const Device &device,
                                                          const FixedLayouts *fixed);
/// Family::isUseful: single-consumer tiles support some orientations alone, and the registers that
/// an epilogue leaves depend on layouts.
bool isUsefulSm90Tile(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs);

/// Stream-K tiles (Sm90GemmKnobs::streamK) for a contraction under layouts of gemm-sm90, best first
/// by the model. No configuration space contains them: `weft profile` measures them, and selection
/// uses their measurements.
std::vector<Sm90GemmKnobs> streamKTiles(const Kernel &kernel, const LayoutTuple &layouts,
                                        const Device &device);

}  // namespace weft
