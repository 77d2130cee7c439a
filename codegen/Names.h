// Identifiers of emitted text: valid, unique, and the same for equal kernels.
#pragma once

#include "codegen/Code.h"
#include "kernel/Kernel.h"

#include <set>
#include <string>

namespace weft::codegen {

/// Hands out identifiers; the first request for a name gets it, later ones get a number appended.
class Names {
public:
  Names();
  /// A valid unused identifier that reads like `wish`.
  Code reserve(std::string_view wish);

private:
  std::set<std::string> taken;
};

/// The kernel with the names that hashed text uses: axes a0, a1, ..., inputs in0, ..., outputs
/// out0, ..., other values v0, ..., no numbers. Kernels that differ in names alone become equal.
Kernel withCanonicalNames(const Kernel &kernel);

}  // namespace weft::codegen
