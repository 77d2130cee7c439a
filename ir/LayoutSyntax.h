// Layouts of a kernel in axis names, slowest first: ([h, b, j], [i] -> [b, j, i]). What weft.kernel
// prints instead of the attribute's positions; a position stays where its name is not unique in the
// type.
#pragma once

#include "ir/Weft.h"

namespace weft {

/// Null after an error, which was emitted.
LayoutsAttr parseKernelLayouts(mlir::AsmParser &parser, mlir::TypeRange inputs,
                               mlir::TypeRange outputs);
/// One layout per type on each side.
void printKernelLayouts(mlir::AsmPrinter &printer, LayoutsAttr layouts, mlir::TypeRange inputs,
                        mlir::TypeRange outputs);

}  // namespace weft
