// One contraction as kernels on tensor cores take it (gemm_sm80, gemm_sm90): C is contiguous along
// n, A and B each along k or along their outer axis; 8-bit floats and tf32 along k alone. A result
// that is contiguous along m is computed as C^T = B^T A^T. Where groups of axes do not merge, a
// tensor map has a dimension for each of their strides (codegen/families/gemm_sm90/Sm90Strides.h).
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Expected.h"
#include "kernel/MultiStrideGemm.h"

#include <numeric>
#include <optional>
#include <string>

namespace weft {

/// Element strides of an operand along its outer axis (m or n), k and the batch; one of the first
/// two is 1. Where a group has several strides these are the fastest, and all stand in the factors
/// of the groups.
struct GemmOperand {
  size_t input = 0;  ///< position in Kernel::inputs
  int64_t outer = 0, k = 0, batch = 0;
  bool usesTma = true;  ///< whether TMA can load it: rows start at multiples of 16 bytes
  GroupFactors outerFactors = {}, kFactors = {},
               batchFactors = {};  ///< empty where each group has one stride
  bool hasSeveralStrides() const { return !outerFactors.empty(); }
  /// The prologue is one factor a row and run of whole k-tiles: accumulators are scaled and not the
  /// operand.
  bool isScaled = false;
  /// A prologue computes the operand (kernel/ContractionPrologue.h); strides are those of the
  /// tensor that it reads.
  bool isTransformed = false;
  bool isAlongK() const { return k == 1; }
  /// Elements from a row to the next.
  int64_t pitch() const { return isAlongK() ? outer : k; }
  /// Bytes that the starts of all rows are multiples of, a power of two of at most 128: TMA moves
  /// rows of 128 bytes, which arrive slower where they straddle sectors (of 32 bytes) or lines (of
  /// 128) of L2. 128 where TMA does not load the operand.
  int64_t rowAlignment(int64_t elementBytes) const {
    constexpr int64_t line = 128;
    return usesTma && !isTransformed ? std::gcd(pitch() * elementBytes, line) : line;
  }
  bool straddlesLines(int64_t elementBytes) const { return rowAlignment(elementBytes) < 128; }
  bool operator==(const GemmOperand &) const = default;
};

/// In the kernel template's terms, after the exchange of A and B.
struct GemmProblem {
  bool isSwapped = false;  ///< its A is the contraction's B
  int64_t batch = 1, m = 1, n = 1, k = 1;
  GemmOperand a = {}, b = {};
  int64_t strideCm = 0, batchStrideC = 0;
  GroupFactors mFactors = {}, nFactors = {}, batchFactors = {};  ///< of C, as those of operands
  bool usesTma = true;             ///< whether TMA can store C: elements of 16 bits alone
  bool sumsTokens = false;         ///< k are packed tokens, their number known at run time
  DType operandType = DType::f16;  ///< of A, as the GEMM reads it; B's is as wide
  bool operator==(const GemmProblem &) const = default;
  /// Whether TMA stores every subtile of C; it clips columns at 16 bytes only.
  bool storesOnlyByTma() const { return usesTma && n % 8 == 0; }
  bool resultHasSeveralStrides() const { return !mFactors.empty(); }
  /// Whether any of A, B and C has.
  bool hasSeveralStrides() const {
    return a.hasSeveralStrides() || b.hasSeveralStrides() || resultHasSeveralStrides();
  }
  bool isAnyTransformed() const { return a.isTransformed || b.isTransformed; }
  bool isScaled() const { return a.isScaled; }
  /// Elements of k in a k-tile, whose rows are 128 bytes: 64 of 16 bits, 128 of 8, 32 of tf32.
  int64_t depth() const { return 128 / sizeOf(operandType); }
};

/// Or why there is none, naming the operand and the limit. Under the layouts of a configuration, of
/// operands and results of the types that the family takes. Rows that start at other addresses than
/// multiples of 16 bytes take a slower path and are no rejection. `takesEveryOrder`: operands that
/// are read as tf32 may be contiguous along their outer axis, as mma.sync takes them.
Expected<GemmProblem, Reason> gemmProblem(const Kernel &kernel, const Configuration &configuration,
                                          bool takesEveryOrder);
/// The same for mma.sync (sm80_gemm.cuh).
inline Expected<GemmProblem, Reason> mmaSyncProblem(const Kernel &kernel,
                                                    const Configuration &configuration) {
  return gemmProblem(kernel, configuration, true);
}

}  // namespace weft
