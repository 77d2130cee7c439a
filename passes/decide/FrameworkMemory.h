// The memory that a graph needs in a framework that runs op by op with a fused attention. By
// default a plan should not exceed it.
#pragma once

#include "passes/select/Selection.h"

namespace weft::decision {

/// Most bytes of results and temporaries that are alive at once when every op runs by itself, in
/// the order of the graph, and stores its result; views store nothing, and neither does what lies
/// between the two contractions of an attention: the operand of a softmax, its result, and
/// element-wise ops before and after it, nor between the steps of a decomposed norm. Arguments and
/// parameters aside.
int64_t frameworkBytes(const select::Problem &problem);

/// Of that, what is left for a workspace beside the results.
int64_t frameworkWorkspaceBytes(const select::Problem &problem);

}  // namespace weft::decision
