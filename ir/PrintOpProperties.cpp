// A print-only pass: what every op of a graph answers about itself, one line an op.
#include "ir/Weft.h"

#include "mlir/Pass/Pass.h"

#include <fmt/format.h>

namespace weft {
namespace {

struct PrintOpProperties : mlir::PassWrapper<PrintOpProperties, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintOpProperties)

  llvm::StringRef getArgument() const final { return "print-op-properties"; }
  llvm::StringRef getDescription() const final {
    return "Prints class, iteration space, flop and elements of every op";
  }

  void runOnOperation() final {
    getOperation()->walk<mlir::WalkOrder::PreOrder>([](WeftOp op) {
      llvm::outs() << fmt::format("{}: {}; space {}; {} flop; {} read, {} written",
                                  op->getName().getStringRef().str(), nameOf(op.operatorClass()),
                                  weft::print(op.iterationSpace()), op.flop(), op.elementsRead(),
                                  op.elementsWritten());
      if (const Expression expression = op.expression(); !expression.empty())
        llvm::outs() << "; " << expression.text();
      llvm::outs() << '\n';
    });
    markAllAnalysesPreserved();
  }
};

}  // namespace

void registerPrintOpProperties() { mlir::PassRegistration<PrintOpProperties>(); }

}  // namespace weft
