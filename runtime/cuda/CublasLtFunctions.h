// The C interface of cuBLASLt as far as GEMMs need it: our own declarations of its functions,
// values and two structs, which are part of the library's stable interface since CUDA 11. Internal
// to runtime/cuda/CublasLt*.cpp.
#pragma once

#include "kernel/DType.h"
#include "runtime/system/SharedLibrary.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace weft::runtime::cublaslt {

using Status = int;  ///< cublasStatus_t
constexpr Status success = 0;

// Opaque handles.
struct HandleData;
struct OperationData;
struct LayoutData;
struct PreferenceData;
using Handle = HandleData *;
using Operation = OperationData *;
using Layout = LayoutData *;
using Preference = PreferenceData *;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

enum ComputeType : int {
  compute32F = 68,
  compute32FFastTF32 = 77
};  ///< cublasComputeType_t: fp32, no reduced precision; f32 read as tf32
enum DataType : int {
  real32F = 0,
  real16F = 2,
  real16BF = 14,
  real8FE4M3 = 28,
  real8FE5M2 = 29
};                                                       ///< cudaDataType_t
enum Transpose : int32_t { plain = 0, transposed = 1 };  ///< cublasOperation_t
enum OperationAttribute : int {
  transposeA = 3,
  transposeB = 4,
  epilogueKind = 7,  ///< uint32_t, cublasLtEpilogue_t
  biasPointer = 8,   ///< of a bias, or of the sum that is written
  auxiliaryPointer = 11,
  auxiliaryLeadingDimension = 12,
  auxiliaryBatchStride = 13,
  leftScalePointer = 17,  ///< float on the device, which multiplies A; none: 1
  rightScalePointer = 18,
  fastAccumulation = 25,  ///< int8_t: sums of 8-bit floats stay in the tensor cores
};
/// cublasLtEpilogue_t; sums of an operand name the library's own A and B.
enum EpilogueKind : uint32_t {
  kindNone = 1,
  kindRelu = 2,
  kindBias = 4,
  kindReluBias = 6,
  kindGelu = 32,
  kindGeluBias = 36,
  kindGeluAux = 160,
  kindGeluAuxBias = 164,
  kindDgelu = 192,
  kindDgeluBgrad = 208,
  kindBgradLeft = 256,
  kindBgradRight = 512,
};
enum LayoutAttribute : int { batchCount = 5, batchOffset = 6 };
enum PreferenceAttribute : int {
  maximumWorkspace = 1,
  reductionSchemes = 3,
  alignmentA = 5,
  alignmentB = 6,
  alignmentC = 7,
  alignmentD = 8,
};
/// How parts of k are added: one after another in the result's own type, in fp32, or in the
/// result's type.
enum ReductionScheme : uint32_t { inPlace = 1, inComputeType = 2, inOutputType = 4 };
/// cublasLtMatmulAlgoConfigAttributes_t.
enum AlgorithmAttribute : int {
  identity = 0,
  tile = 1,
  splitK = 2,
  reductionScheme = 3,
  swizzle = 4,
  customOption = 5,
  stages = 6,
  innerShape = 7,
  clusterShape = 8,
};

/// The functions, found once. Throws Error(badInput) naming the library that lacks one.
class Functions {
public:
  explicit Functions(const std::filesystem::path &library);
  Functions(const Functions &) = delete;
  Functions &operator=(const Functions &) = delete;

  size_t (*version)() = nullptr;
  const char *(*statusName)(Status) = nullptr;
  Status (*create)(Handle *) = nullptr;
  Status (*destroy)(Handle) = nullptr;
  Status (*createOperation)(Operation *, ComputeType, DataType scale) = nullptr;
  Status (*destroyOperation)(Operation) = nullptr;
  Status (*setOperation)(Operation, OperationAttribute, const void *, size_t) = nullptr;
  Status (*createLayout)(Layout *, DataType, uint64_t rows, uint64_t columns,
                         int64_t leadingDimension) = nullptr;
  Status (*destroyLayout)(Layout) = nullptr;
  Status (*setLayout)(Layout, LayoutAttribute, const void *, size_t) = nullptr;
  Status (*createPreference)(Preference *) = nullptr;
  Status (*destroyPreference)(Preference) = nullptr;
  Status (*setPreference)(Preference, PreferenceAttribute, const void *, size_t) = nullptr;
  Status (*heuristic)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference,
                      int requested, HeuristicResult *, int *returned) = nullptr;
  Status (*initializeAlgorithm)(Handle, ComputeType, DataType scale, DataType a, DataType b,
                                DataType c, DataType d, int id, Algorithm *) = nullptr;
  Status (*checkAlgorithm)(Handle, Operation, Layout a, Layout b, Layout c, Layout d,
                           const Algorithm *, HeuristicResult *) = nullptr;
  Status (*setAlgorithm)(Algorithm *, AlgorithmAttribute, const void *, size_t) = nullptr;
  Status (*getAlgorithm)(const Algorithm *, AlgorithmAttribute, void *, size_t,
                         size_t *written) = nullptr;
  Status (*multiply)(Handle, Operation, const void *alpha, const void *a, Layout, const void *b,
                     Layout, const void *beta, const void *c, Layout, void *d, Layout,
                     const Algorithm *, void *workspace, size_t workspaceBytes,
                     void *stream) = nullptr;

private:
  SharedLibrary library;
};

/// The library's value for f32, f16, bf16 and 8-bit floats. Throws Error(unsupported) for every
/// other.
DataType dataType(DType type);

}  // namespace weft::runtime::cublaslt
