// Dropout of the probabilities of a fused attention as emitted text, whatever the family: which of
// the eight exponentials of a fragment are kept, by one mix of words (ir/SPEC.md, "Dropout bits").
#pragma once

#include "codegen/ExpressionText.h"
#include "codegen/Program.h"
#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/contraction/ContractionTexts.h"

#include <string>
#include <vector>

namespace weft {

/// Why probabilities cannot be dropped a fragment at a time: their last two logical axes are not
/// those of queries and keys. Empty if they can, or if none are dropped.
std::string attentionDropoutRejection(const Kernel &kernel, const AttentionRegion &region,
                                      const AttentionProblem &problem);

}  // namespace weft

namespace weft::codegen {

struct AttentionDropout {
  std::vector<Parameter> parameters = {};  ///< behind the kernel's tensors
  ConstantLine constants = {};
  Block body = {};  ///< reads the key and defines `kept`; needs weft/dropout.cuh
  /// `weft::Kept<8> (int head, int query, int key)` of the fragment whose first element that is.
  std::string kept;
  std::string keepScale;  ///< what stays is multiplied by it, as the output may be
};

/// attentionDropoutRejection() is empty. `axes`: constants of type int with the extents of the
/// kernel's axes.
AttentionDropout attentionDropout(const Kernel &kernel, const AttentionRegion &region,
                                  const AttentionProblem &problem, Names &names,
                                  const std::vector<std::string> &axes);
/// The same in front of a kernel's call, whose arguments it becomes.
void addAttentionDropout(AttentionDropout dropout, Program &program,
                         std::vector<NamedArgument> &arguments);

}  // namespace weft::codegen
