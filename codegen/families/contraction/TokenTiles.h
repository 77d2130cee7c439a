// Tiles of a GEMM that hold nothing but rows or columns behind the last packed token
// (kernel/UnusedTokens.h): kernel templates that are told so neither load nor multiply for them.
// Their epilogue masks whatever it is given. And contractions that sum over packed tokens
// (summedTokens), which kernel templates end with the k-tile of the last one.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/ContractionRegion.h"

#include <string>

namespace weft {

/// Whether kernel templates that end sums over packed tokens with the last one take a kernel: it
/// has such a sum, and none of its operands is made by a prologue.
bool hasEndingSum(const Kernel &kernel);

enum class TokenSide : uint8_t { none, rows, columns };

/// Along which side of the kernel template's GEMM (after the exchange of A and B) tokens lie; none
/// where tokens share a side with another axis, or are not all that results are masked by.
TokenSide tokenSide(const Kernel &kernel, const ContractionRegion &region, bool isSwapped);

/// The kernel template's argument: "weft::sm90::RowTokens{offsets_v}", "UnreadRowTokens" where
/// nothing reads what lies behind tokens; empty for no side or no name.
std::string tokensArgument(const Kernel &kernel, TokenSide side, const std::string &space,
                           const std::string &count);

}  // namespace weft
