// Helpers on weft tensor types.
#include "ir/Types.h"

#include "ir/Weft.h"

namespace weft {

mlir::RankedTensorType makeTensor(mlir::MLIRContext *context, const std::vector<std::string> &names,
                                  const std::vector<int64_t> &extents, mlir::Type elementType) {
  return mlir::RankedTensorType::get(extents, elementType, AxesAttr::get(context, names));
}

mlir::RankedTensorType makeTensor(mlir::MLIRContext *context,
                                  const std::vector<std::pair<std::string, int64_t>> &axes,
                                  DType dtype) {
  std::vector<std::string> names;
  std::vector<int64_t> extents;
  for (const auto &[name, extent] : axes) {
    names.push_back(name);
    extents.push_back(extent);
  }
  return makeTensor(context, names, extents, fromDType(context, dtype));
}

std::vector<std::string> axisNames(mlir::Type type) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  std::vector<std::string> names;
  if (auto axes = mlir::dyn_cast_or_null<AxesAttr>(tensor.getEncoding())) {
    for (mlir::StringAttr name : axes.getNames()) names.push_back(name.str());
    return names;
  }
  for (int64_t dimension = 0; dimension < tensor.getRank(); ++dimension)
    names.push_back("d" + std::to_string(dimension));
  return names;
}

std::vector<int64_t> extents(mlir::Type type) {
  return mlir::cast<mlir::RankedTensorType>(type).getShape().vec();
}

std::optional<int64_t> dimensionOf(mlir::Type type, llvm::StringRef name) {
  const std::vector<std::string> names = axisNames(type);
  if (std::count(names.begin(), names.end(), name) != 1) return std::nullopt;
  return std::find(names.begin(), names.end(), name) - names.begin();
}

std::optional<DType> toDType(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (type.isF32()) return DType::f32;
  if (type.isF16()) return DType::f16;
  if (type.isBF16()) return DType::bf16;
  if (type.isF64()) return DType::f64;
  if (type.isSignlessInteger(32)) return DType::i32;
  if (type.isSignlessInteger(1)) return DType::i1;
  if (mlir::isa<mlir::Float8E4M3FNType>(type)) return DType::f8e4m3;
  if (mlir::isa<mlir::Float8E5M2Type>(type)) return DType::f8e5m2;
  return std::nullopt;
}

mlir::Type fromDType(mlir::MLIRContext *context, DType dtype) {
  mlir::Builder builder(context);
  switch (dtype) {
    case DType::f32: return builder.getF32Type();
    case DType::f16: return builder.getF16Type();
    case DType::bf16: return builder.getBF16Type();
    case DType::f64: return builder.getF64Type();
    case DType::i32: return builder.getI32Type();
    case DType::i1: return builder.getI1Type();
    case DType::f8e4m3: return mlir::Float8E4M3FNType::get(context);
    case DType::f8e5m2: return mlir::Float8E5M2Type::get(context);
    case DType::tf32: return builder.getF32Type();  // what it is stored as
  }
  llvm_unreachable("every DType has a type");
}

mlir::RankedTensorType withDType(mlir::Type type, DType dtype) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  return tensor.clone(fromDType(type.getContext(), dtype));
}

mlir::RankedTensorType withoutDimensions(mlir::Type type, llvm::ArrayRef<int64_t> dimensions) {
  const std::vector<std::string> names = axisNames(type);
  const std::vector<int64_t> all = extents(type);
  std::vector<std::string> keptNames;
  std::vector<int64_t> kept;
  for (size_t dimension = 0; dimension < all.size(); ++dimension) {
    if (llvm::is_contained(dimensions, static_cast<int64_t>(dimension))) continue;
    keptNames.push_back(names[dimension]);
    kept.push_back(all[dimension]);
  }
  return makeTensor(type.getContext(), keptNames, kept, mlir::getElementTypeOrSelf(type));
}

mlir::RankedTensorType withExtent(mlir::Type type, int64_t dimension, int64_t extent,
                                  llvm::StringRef name) {
  std::vector<std::string> names = axisNames(type);
  std::vector<int64_t> all = extents(type);
  all[dimension] = extent;
  if (!name.empty()) names[dimension] = name.str();
  return makeTensor(type.getContext(), names, all, mlir::getElementTypeOrSelf(type));
}

int64_t elementsOf(mlir::Type type) {
  int64_t product = 1;
  for (int64_t extent : mlir::cast<mlir::ShapedType>(type).getShape()) product *= extent;
  return product;
}

int64_t elementsOf(mlir::TypeRange types) {
  int64_t sum = 0;
  for (mlir::Type type : types) sum += elementsOf(type);
  return sum;
}

}  // namespace weft
