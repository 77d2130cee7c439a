// The constraints on types that hold for every op (type_c2 to type_c6 of SPEC.md).
#include "ir/Weft.h"

namespace weft {
namespace {

mlir::LogicalResult verifyTensor(mlir::Operation *op, mlir::RankedTensorType tensor) {
  auto axes = mlir::dyn_cast_or_null<AxesAttr>(tensor.getEncoding());
  if (!axes)
    return op->emitOpError() << "type_c2: " << tensor
                             << " has no axes; write tensor<4x8xf32, #weft.axes<a, b>>";
  int64_t elements = 1;
  for (auto [dimension, extent] : llvm::enumerate(tensor.getShape())) {
    if (mlir::ShapedType::isDynamic(extent) || extent <= 0)
      return op->emitOpError() << "type_c3: axis " << axes.getNames()[dimension].getValue()
                               << " of " << tensor << " must have a positive static extent";
    if (__builtin_mul_overflow(elements, extent, &elements) ||
        elements > std::numeric_limits<int64_t>::max() / 8)
      return op->emitOpError() << "type_c5: the bytes of " << tensor << " do not fit into 63 bits";
  }
  if (!axes.getRagged().empty())
    return op->emitOpError() << "type_c4: ragged axis " << axes.getNames()[axes.getRagged().front()]
                             << " is reserved: no op takes it yet; use its maximum as a plain axis";
  if (!toDType(tensor))
    return op->emitOpError() << "type_c6: element type of " << tensor
                             << " is not one of f32, f16, bf16, f8E4M3FN, f8E5M2, f64, i32, i1";
  return mlir::success();
}

}  // namespace

mlir::LogicalResult verifyType(mlir::Operation *op, mlir::Type type) {
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type)) return verifyTensor(op, tensor);
  return op->emitOpError() << "type_c2: " << type << " is not a ranked tensor with axes";
}

mlir::LogicalResult verifyTypes(mlir::Operation *op) {
  for (mlir::TypeRange types :
       {mlir::TypeRange(op->getOperandTypes()), mlir::TypeRange(op->getResultTypes())})
    for (mlir::Type type : types)
      if (mlir::failed(verifyType(op, type))) return mlir::failure();
  return mlir::success();
}

}  // namespace weft
