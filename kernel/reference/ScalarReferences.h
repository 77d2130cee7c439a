// What every element-wise op means in fp64, by kind. Generated from ir/ElementwiseOps.td, so
// that one record stays one op; free of MLIR. Ops of coordinates (dropout, mask, rotary) are in the
// table with NaN: they have no meaning by value.
#pragma once

#include "kernel/OpKind.h"

#include <functional>
#include <map>
#include <span>
#include <string>

namespace weft::reference {

/// The value of a numeric attribute of the op by its name.
using NumericAttribute = std::function<double(const char *name)>;
/// Of the values of the op's operands, of which it may not have more.
using ScalarReference = double (*)(std::span<const double> operands,
                                   const NumericAttribute &attribute);
inline constexpr size_t mostScalarOperands = 6;

const std::map<OpKind, ScalarReference> &scalarReferences();

}  // namespace weft::reference
