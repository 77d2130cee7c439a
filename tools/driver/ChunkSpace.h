// What a profile measures for plans in parts: their kernels are smaller than any of the graph, so
// that no row of a whole kernel serves them. And for plans that compute parts of a joined tensor in
// their places: no row serves operands with gaps, but that without is near. And for kernels whose
// rows are of an older text: the chosen configuration again.
#pragma once

#include "plan/PlanBuilder.h"
#include "tools/driver/ProfileSpace.h"

namespace weft::driver {

/// The kernels of the plans that run on parts or whose operands have gaps, in the layouts that they
/// have there: of our own the `mostKnobs` best knobs by the model and those that the plan has, of
/// the library every algorithm. Of other kernels what was measured of another text than
/// `architecture` gets now.
ProfileSpace chunkSpace(const std::vector<PlannedKernels> &plans, const CostModel &model,
                        const ProfileSpaceOptions &options, const std::string &architecture);

}  // namespace weft::driver
