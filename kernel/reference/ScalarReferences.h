// What every element-wise op means in fp64, by kind. Generated from ir/ElementwiseOps.td, so
// that one record stays one op; free of MLIR. Ops of coordinates (dropout, mask, rotary) are in the
// table with NaN: they have no meaning by value.
#pragma once

#include "kernel/OpKind.h"

#include <functional>
#include <map>
#include <string>

namespace weft::reference {

/// The value of a numeric attribute of the op by its name.
using NumericAttribute = std::function<double(const char *name)>;
/// Of up to three operands; operands that the op does not have are ignored.
using ScalarReference = double (*)(double a, double b, double c, const NumericAttribute &attribute);

const std::map<OpKind, ScalarReference> &scalarReferences();

}  // namespace weft::reference
