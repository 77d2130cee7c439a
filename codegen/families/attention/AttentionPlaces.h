// Where the elements of a head begin, as emitted text.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"

#include <string>

namespace weft::codegen {

/// Elements from the tensor's first to that of a head: head / divisor % extent * stride, for each
/// axis of heads; neighbouring axes of one stride merge. `head`: the name of its number.
std::string placeOfHead(const AttentionProblem &problem, const AttentionTensor &tensor,
                        const std::string &head);

/// Elements from the first entry of a table of pages to that of a head's sequence.
std::string placeOfSequence(const AttentionProblem &problem, const std::string &head);

}  // namespace weft::codegen
