// Registration of the dialect, and the names of types in text: !hbjk for a tensor of f16 with axes
// h, b, j, k; other element types carry theirs as a prefix (!f32_bj).
#include "ir/Weft.h"

#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/DialectImplementation.h"

#include "ir/WeftDialect.cpp.inc"

#include "ir/WeftInterfaces.cpp.inc"

namespace weft {
namespace {

bool isOneLetter(llvm::StringRef name) { return name.size() == 1 && llvm::isAlpha(name.front()); }

struct WeftAsmInterface : mlir::OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(mlir::Type type, llvm::raw_ostream &os) const final {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor) return AliasResult::NoAlias;
    auto axes = mlir::dyn_cast_or_null<AxesAttr>(tensor.getEncoding());
    if (!axes || axes.getNames().empty() || !axes.getRagged().empty() ||
        !llvm::all_of(axes.getNames(),
                      [](mlir::StringAttr name) { return isOneLetter(name.getValue()); }))
      return AliasResult::NoAlias;
    if (!tensor.getElementType().isF16()) os << tensor.getElementType() << '_';
    for (mlir::StringAttr name : axes.getNames()) os << name.getValue();
    return AliasResult::FinalAlias;
  }
};

}  // namespace

void WeftDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/WeftOps.cpp.inc"
      >();
  addInterfaces<WeftAsmInterface>();
}

}  // namespace weft
