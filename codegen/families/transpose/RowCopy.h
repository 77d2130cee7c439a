// A copy of rows element by element as a kernel program.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "codegen/families/transpose/TransposeTile.h"

namespace weft::codegen {

/// Elements that a thread copies: as many as a block of that tile has for each thread.
int copiedPerThread(const TransposeKnobs &knobs);

/// `tile`: one that is a copy.
Program lowerRowCopy(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs);

}  // namespace weft::codegen
