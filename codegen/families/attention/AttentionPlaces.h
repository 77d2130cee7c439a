// Where the elements of a head begin, as emitted text.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/attention/AttentionProblem.h"

#include <string>

namespace weft::codegen {

/// Elements from the tensor's first to that of a head: head / divisor % extent * stride, for each
/// axis of heads; neighbouring axes of one stride merge. `head`: the name of its number.
std::string placeOfHead(const AttentionProblem &problem, const AttentionTensor &tensor,
                        const std::string &head);

/// Elements from the first entry of a table of pages to that of a head's sequence.
std::string placeOfSequence(const AttentionProblem &problem, const std::string &head);

/// A function of a head and a token: the address of the token's row, which lies `rowStride`
/// elements behind that of the one before. `place`: placeOfHead() of "head".
Statement rowFunction(const std::string &name, const std::string &tensor, const std::string &place,
                      int64_t rowStride);

}  // namespace weft::codegen
