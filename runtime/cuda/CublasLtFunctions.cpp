// Finding cuBLASLt's functions; see CublasLtFunctions.h.
#include "runtime/cuda/CublasLtFunctions.h"

#include "kernel/Error.h"

namespace weft::runtime::cublaslt {

Functions::Functions(const std::filesystem::path &path) : library(path.string()) {
  if (!library.isOpen()) throw Error::badInput("cuBLASLt does not load: {}", library.problem());
  const auto find = [&](const char *name, auto *&function) {
    if (!library.find(name, function))
      throw Error::badInput("{} is no cuBLASLt that weft can use: it has no {}", path.string(),
                            name);
  };
  find("cublasLtGetVersion", version);
  find("cublasLtGetStatusName", statusName);
  find("cublasLtCreate", create);
  find("cublasLtDestroy", destroy);
  find("cublasLtMatmulDescCreate", createOperation);
  find("cublasLtMatmulDescDestroy", destroyOperation);
  find("cublasLtMatmulDescSetAttribute", setOperation);
  find("cublasLtMatrixLayoutCreate", createLayout);
  find("cublasLtMatrixLayoutDestroy", destroyLayout);
  find("cublasLtMatrixLayoutSetAttribute", setLayout);
  find("cublasLtMatmulPreferenceCreate", createPreference);
  find("cublasLtMatmulPreferenceDestroy", destroyPreference);
  find("cublasLtMatmulPreferenceSetAttribute", setPreference);
  find("cublasLtMatmulAlgoGetHeuristic", heuristic);
  find("cublasLtMatmulAlgoInit", initializeAlgorithm);
  find("cublasLtMatmulAlgoCheck", checkAlgorithm);
  find("cublasLtMatmulAlgoConfigSetAttribute", setAlgorithm);
  find("cublasLtMatmulAlgoConfigGetAttribute", getAlgorithm);
  find("cublasLtMatmul", multiply);
}

DataType dataType(DType type) {
  switch (type) {
    case DType::f32:
    case DType::tf32: return real32F;
    case DType::f16: return real16F;
    case DType::bf16: return real16BF;
    case DType::f8e4m3: return real8FE4M3;
    case DType::f8e5m2: return real8FE5M2;
    default:
      throw Error::unsupported("cuBLASLt products are of floats of 8, 16 and 32 bits, not {}",
                               nameOf(type));
  }
}

}  // namespace weft::runtime::cublaslt
