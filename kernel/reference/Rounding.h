// Rounding of a value to what a stored element type can hold: to nearest, ties to even, with
// subnormals and overflow to infinity, as the conversion instructions of the GPUs do. The 8-bit
// formats saturate (ir/SPEC.md, "8-bit floats").
#pragma once

#include "kernel/DType.h"

namespace weft::reference {

/// i1 becomes 0 or 1 (any non-zero value, also NaN, is 1); i32 is truncated towards zero; f64 is
/// unchanged.
double roundTo(DType type, double value);

/// To 10 fraction bits, to nearest (ir/SPEC.md, "Contraction"); infinities and NaN stay.
double roundToTf32(double value);

/// The value clamped to the largest finite one of an 8-bit format, also infinities in f8e4m3, which
/// has none. Values of any other type stay.
double saturated(DType type, double value);

/// The largest error of storing a finite value that is saturated(): half the distance of its
/// neighbours. Zero for f64 and integers.
double roundingError(DType type, double value);

}  // namespace weft::reference
