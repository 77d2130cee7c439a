// Parses, verifies, transforms and prints weft graphs.
#include "ir/Weft.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<weft::WeftDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "weft graph optimizer\n", registry));
}
