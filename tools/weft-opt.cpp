// Parses, verifies, transforms and prints weft graphs. What nests deeper than a stack may hold is
// rejected before it is parsed.
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "passes/Passes.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace {

mlir::LogicalResult run(const std::string &input, const std::string &output,
                        mlir::DialectRegistry &registry) {
  std::string reason;
  std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &reason);
  if (!text) throw weft::Error::badInput("{}", reason);
  weft::checkMlirNesting(std::string_view(text->getBufferStart(), text->getBufferSize()),
                         text->getBufferIdentifier().str());
  const std::unique_ptr<llvm::ToolOutputFile> written = mlir::openOutputFile(output, &reason);
  if (!written) throw weft::Error::badInput("{}", reason);
  const mlir::LogicalResult result = mlir::MlirOptMain(
      written->os(), std::move(text), registry, mlir::MlirOptMainConfig::createFromCLOptions());
  if (mlir::succeeded(result)) written->keep();
  return result;
}

}  // namespace

int main(int argc, char **argv) {
  const llvm::InitLLVM initialized(argc, argv);
  mlir::DialectRegistry registry;
  registry.insert<weft::WeftDialect>();
  weft::registerPrintOpProperties();
  weft::registerWeftPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  const auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "weft graph optimizer\n", registry);
  const mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  try {
    return mlir::asMainReturnCode(run(input, output, registry));
  } catch (const weft::Error &error) {
    fmt::print(stderr, "weft-opt: {}\n", error.what());
    return int(error.kind);
  }
}
