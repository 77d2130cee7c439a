// What printer and parser of statements share: how each attribute of the dialect is written.
// Private to ir/Syntax*.cpp.
#pragma once

#include "ir/Weft.h"

#include <cstdint>
#include <map>

namespace weft {

/// A flag has no value: it is there or not.
enum class Notation : uint8_t { dimension, dimensions, real, integer, integers, word, flag, spec };

/// One row per name; names mean the same in every op.
const std::map<llvm::StringRef, Notation> &vocabulary();

}  // namespace weft
