// What the steps of a path are, for people and plans.
#pragma once

#include "passes/select/Problem.h"

#include <string>

namespace weft::select {

/// "phbj" for letters, "p,h,b,j" else.
std::string printLayout(const Layout &layout, const Tensor &tensor);

/// Of several layers the one whose kernel a step launches: that of the tensor that is transposed,
/// or that the kernel's first op computes; 0: of none.
int64_t layerOf(const Problem &problem, const Step &step);

/// "name: in in -> out, knobs" of one step.
std::string printStep(const Problem &problem, const Step &step);

}  // namespace weft::select
