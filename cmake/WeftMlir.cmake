# LLVM and MLIR 22. Two ways to link, one interface: the target weft_mlir.
#   dev       the shared libMLIR and libLLVM: seconds to link
#   portable  static components, named by each library that needs them
set(MLIR_DIR /usr/lib/llvm-22/lib/cmake/mlir CACHE PATH "")
set(LLVM_DIR /usr/lib/llvm-22/lib/cmake/llvm CACHE PATH "")
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(MLIR_TABLEGEN_EXE /usr/lib/llvm-22/bin/mlir-tblgen)
include(TableGen)
include(AddLLVM)
include(AddMLIR)

set(WEFT_MLIR_COMPONENTS MLIRIR MLIRParser MLIRAsmParser MLIRPass MLIRTransforms MLIRTransformUtils
    MLIRRewrite MLIRSupport MLIRFunctionInterfaces MLIRSideEffectInterfaces MLIRInferTypeOpInterface
    MLIRCallInterfaces MLIROptLib MLIRLspServerLib)

add_library(weft_mlir INTERFACE)
target_include_directories(weft_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
if(WEFT_STATIC_MLIR)
  include(WeftStaticMlir)
  target_link_libraries(weft_mlir INTERFACE ${WEFT_MLIR_COMPONENTS})
else()
  target_link_libraries(weft_mlir INTERFACE MLIR LLVM)
endif()
