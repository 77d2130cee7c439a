// Helpers on weft tensor types: ranked, static, one axis name per dimension.
#pragma once
#ifndef WEFT_IR_TYPES_H  // beside a precompiled header of a compiler cache
#define WEFT_IR_TYPES_H

#include "ir/IterationSpace.h"
#include "kernel/DType.h"
#include "kernel/Kernel.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

using KernelAttributes = std::map<std::string, Attribute>;

/// tensor<8x512xf16, #weft.axes<b, j>> from {{"b", 8}, {"j", 512}}.
mlir::RankedTensorType makeTensor(mlir::MLIRContext *context,
                                  const std::vector<std::pair<std::string, int64_t>> &axes,
                                  DType dtype);
mlir::RankedTensorType makeTensor(mlir::MLIRContext *context, const std::vector<std::string> &names,
                                  const std::vector<int64_t> &extents, mlir::Type elementType);

/// One name per dimension; "d0", "d1", ... for a tensor without an axes attribute.
std::vector<std::string> axisNames(mlir::Type type);
std::vector<int64_t> extents(mlir::Type type);
/// The dimension of that name, if exactly one has it.
std::optional<int64_t> dimensionOf(mlir::Type type, llvm::StringRef name);

std::optional<DType> toDType(mlir::Type elementOrTensorType);
mlir::Type fromDType(mlir::MLIRContext *context, DType dtype);
/// The same extents and axes with another element type, or without some dimensions.
mlir::RankedTensorType withDType(mlir::Type type, DType dtype);
mlir::RankedTensorType withoutDimensions(mlir::Type type, llvm::ArrayRef<int64_t> dimensions);
mlir::RankedTensorType withExtent(mlir::Type type, int64_t dimension, int64_t extent,
                                  llvm::StringRef name = "");

/// The product of all extents (64-bit; type_c3 excludes overflow).
int64_t elementsOf(mlir::Type type);
int64_t elementsOf(mlir::TypeRange types);
/// The same as a factor of flop.
inline double elementCount(mlir::Value value) { return double(elementsOf(value.getType())); }

}  // namespace weft

#endif  // WEFT_IR_TYPES_H
