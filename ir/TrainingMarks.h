// What a graph says of the arguments that training changes: SPEC.md, "Derivatives".
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft {

/// Of a result: the argument whose value in the next step it is, or the result itself, which is
/// then the next value of none. Of an argument of f32: the one of f16 or bf16 that is its rounding.
inline constexpr llvm::StringLiteral updateOfName = "weft.update_of",
                                     masterOfName = "weft.master_of";

}  // namespace weft
