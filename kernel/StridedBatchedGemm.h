// A contraction seen as one batched strided GEMM: which axes are batch, m, n, k, and
// whether the layouts let each group merge into one extent with one stride.
#pragma once

#include "kernel/Configuration.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// Which op of the body is the contraction: the first op, or the first after a prologue
/// (kernel/ContractionPrologue.h).
std::optional<OpId> contractionIndex(const Kernel &kernel);
/// The values A, B and C of the contraction of two operands that is the first op, or the first
/// after a prologue of one operand; for that operand the input that is read from memory, which has
/// the operand's axes. Nothing if there is no such contraction.
std::optional<std::array<ValueId, 3>> contractionValues(const Kernel &kernel);

/// Which inputs of the kernel are A and B: they may stand in another order than the einsum's.
struct GemmInputs {
  size_t a = 0, b = 1;
  bool operator==(const GemmInputs &) const = default;
};
/// Of a kernel that has contractionValues().
GemmInputs gemmInputs(const Kernel &kernel);

enum ContractionGroup : size_t { batchGroup, mGroup, nGroup, kGroup, contractionGroupCount };
using ContractionGroups =
    std::array<std::vector<AxisId>,
               contractionGroupCount>;  ///< kernel axes; those of extent 1 are left out
/// batch: in A, B, C; m: in A, C; n: in B, C; k: in A, B.
ContractionGroups contractionGroups(const Kernel &kernel, const std::array<ValueId, 3> &values);

/// The batched strided GEMM of a contraction under given layouts: extents and element strides.
struct StridedBatchedGemm {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t batchStrideA = 0, batchStrideB = 0, batchStrideC = 0;
  int64_t strideAm = 0, strideAk = 0, strideBk = 0, strideBn = 0, strideCm = 0, strideCn = 0;
  auto operator<=>(const StridedBatchedGemm &) const = default;
};
/// Element types of the operands of a GEMM and of what it stores. One for all but where the
/// operands are 8-bit floats, which may be of two formats and give wider results, or f32 that the
/// GEMM reads as tf32.
struct GemmTypes {
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  auto operator<=>(const GemmTypes &) const = default;
  bool isUniform() const { return a == c && b == c; }
  bool areFloat8() const { return isFloat8(a) && isFloat8(b); }
  bool areTf32() const { return a == DType::tf32 && b == DType::tf32; }
};
/// Whether the contraction's f32 operands may be read as tf32 (ir/SPEC.md, "Contraction").
bool isTf32(const BodyOp &contraction);
/// Of a kernel that has contractionValues(): a and b as the contraction reads them; c is that of
/// the kernel's first output.
GemmTypes gemmTypes(const Kernel &kernel);
/// "f16", "f8e4m3,f8e5m2->f16", "tf32,tf32->f32".
std::string nameOf(const GemmTypes &types);
std::optional<GemmTypes> parseGemmTypes(std::string_view text);

/// Nothing if the layouts do not map to one GEMM. The kernel has contractionValues(); what
/// follows the contraction is over the axes of C (kernel/ContractionRegion.h), and C lies as the
/// kernel's first output does.
std::optional<StridedBatchedGemm> stridedBatchedGemm(const Kernel &kernel,
                                                     const Configuration &configuration);

/// Element strides of a value along the merged groups of a GEMM; 0 along those that it does not
/// have.
struct GroupStrides {
  int64_t batch = 0, m = 0, n = 0, k = 0;
  auto operator<=>(const GroupStrides &) const = default;
};
/// The same of any value over axes of the GEMM under a given layout, in the order of axes of the
/// GEMM's operands. Nothing where the value has only some axes of a group, or where a group does
/// not merge.
std::optional<GroupStrides> groupStrides(const Kernel &kernel, const Configuration &configuration,
                                         ValueId value, const Layout &layout);

}  // namespace weft
