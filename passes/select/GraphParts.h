// Where a problem falls into parts that no kernel reaches across, and which of its tensors may
// stand at a border between forms of a graph.
#pragma once

#include "passes/select/Selection.h"

#include <set>
#include <string>
#include <vector>

namespace weft::select {

/// Name, type, axes and what the tensor is to the graph: equal for equal tensors.
std::string identityOf(const Tensor &tensor);

/// By tensor, whether it may be live at a cut or be shared by several forms of the graph:
/// arguments, and those in `mayCross` whose name is unique. Not tensors that slices and
/// concatenations touch: what kernels may lie in each other's operands depends on all that touch
/// these.
std::vector<bool> mayBeShared(const Problem &problem, const std::set<std::string> &mayCross);

/// Whether a slice or concatenation touches an argument that is no parameter, so that all kernels
/// that read it depend on each other.
bool movesArguments(const Problem &problem);

/// By op of the problem, how many cuts lie before it; only tensors in `mayCross` may be live there.
std::vector<int> partsOf(const Problem &problem, const std::set<std::string> &mayCross);

}  // namespace weft::select
