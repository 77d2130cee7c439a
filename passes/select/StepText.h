// The printed text of the steps of a path.
#pragma once

#include "passes/select/Selection.h"

#include <string>

namespace weft::select {

/// "phbj" for letters, "p,h,b,j" else.
std::string printLayout(const Layout &layout, const Tensor &tensor);

/// "name: in in -> out, knobs" of one step.
std::string printStep(const Problem &problem, const Step &step);

}  // namespace weft::select
