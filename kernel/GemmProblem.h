// One contraction as the skeleton kernel of sm_90a takes it
// (codegen/device/sm90_gemm.cuh): C is contiguous along n, A and B each along k or along
// their outer axis; 8-bit floats and tf32 along k alone. A result that is contiguous along m is
// computed as C^T = B^T A^T. Where groups of axes do not merge, TMA counts through
// their strides (kernel/Sm90Strides.h).
#pragma once

#include "kernel/LibraryGemm.h"
#include "kernel/MultiStrideGemm.h"

#include <optional>
#include <string>

namespace weft {

struct ContractionRegion;

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
  bool isScaled = false;  ///< of what is read, by one factor a row and run of whole k-tiles:
                          ///< sums of products are scaled in its place
  bool isTransformed =
      false;  ///< of what is read, by ops before the contraction
              ///< (kernel/ContractionPrologue.h); strides are those of what is read
  bool isAlongK() const { return k == 1; }
  /// Elements from a row to the next.
  int64_t pitch() const { return isAlongK() ? outer : k; }
  /// Whether rows start at odd multiples of 16 bytes: their 128 bytes straddle sectors of 32, and
  /// arrive half as fast.
  bool straddlesSectors(int64_t elementBytes) const {
    return usesTma && !isTransformed && pitch() * elementBytes % 32 != 0;
  }
  bool operator==(const GemmOperand &) const = default;
};

/// In the skeleton's terms, after the exchange of A and B.
struct GemmProblem {
  bool isSwapped = false;  ///< its A is the contraction's B
  int64_t batch = 1, m = 1, n = 1, k = 1;
  GemmOperand a = {}, b = {};
  int64_t strideCm = 0, batchStrideC = 0;
  GroupFactors mFactors = {}, nFactors = {}, batchFactors = {};  ///< of C, as those of operands
  bool usesTma = true;             ///< whether TMA can store C: elements of 16 bits alone
  DType operandType = DType::f16;  ///< of A, as the GEMM reads it; B's is as wide
  bool operator==(const GemmProblem &) const = default;
  /// Whether every subtile of C leaves by TMA, which clips columns at 16 bytes only.
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

struct GemmProblemOrRejection {
  std::optional<GemmProblem> gemm = {};
  std::string rejection = {};  ///< why there is none: names the operand and the limit
};
/// Under the layouts of a configuration, of operands and results of the types that the family
/// takes. Rows that start at other addresses than multiples of 16 bytes take a slower path and are
/// no rejection, unless a group of the operand has several strides.
GemmProblemOrRejection wgmmaProblem(const Kernel &kernel, const Configuration &configuration);
/// The same for mma.sync (sm80_gemm.cuh), which take tf32 in every order, too.
GemmProblemOrRejection mmaSyncProblem(const Kernel &kernel, const Configuration &configuration);

/// The sides of a single-consumer tile (sm90_single_consumer.cuh): `rows` of the operand that lies
/// along the 64 rows of the instruction, `columns` of the other one.
struct SingleConsumerSides {
  int rows = 64, columns = 8;
  bool isAlongM = true;  ///< whether rows are rows of C, of operand A; else columns, of B
  bool operator==(const SingleConsumerSides &) const = default;
};
/// The longer side of the tile is that of the rows, and along m where both are equal.
SingleConsumerSides singleConsumerSides(const Sm90GemmKnobs &knobs);

/// Why no kernel has such knobs, whatever it computes; empty if they are legal.
std::string sm90KnobsRejection(const Sm90GemmKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Why this GEMM has no kernel with such knobs, which are legal by themselves; empty if it has.
/// `epilogueRegisters`: see kernel/ContractionRegion.h.
std::string sm90TileRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs,
                              int epilogueRegisters);
/// Why no single-consumer tile takes what follows the GEMM, whatever its layouts; empty if one
/// does.
std::string singleConsumerEpilogueRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why this configuration of a kernel is not emitted: its layouts, its knobs, or both together.
/// Empty if it is.
std::string sm90Rejection(const Kernel &kernel, const Configuration &configuration,
                          const Sm90GemmKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Dynamic shared memory: stages of k-tiles, subtiles of C, partial sums of other blocks, barriers.
/// A single-consumer tile has no subtiles. `isTransformedInPlace`: of a GEMM one of whose operands
/// is made of k-tiles that TMA brings, which have a barrier more a stage.
int64_t sm90SharedBytes(const Sm90GemmKnobs &knobs, bool isTransformedInPlace = false);
/// Whether an operand of this GEMM is made of k-tiles that TMA brings.
bool isTransformedInPlace(const GemmProblem &gemm);
/// Tiles of C over all batch elements.
int64_t sm90Tiles(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
/// Device memory of the kernel's module for the sums of tiles that blocks share; 0 where they share
/// none (streamK).
int64_t streamKBytes(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
inline constexpr int64_t streamKPartialsLimit = int64_t(64) << 20;  ///< bytes of it (a choice)
/// K-tiles.
int64_t sm90KTiles(const GemmProblem &gemm);
/// Of the grid: a cluster for every tile where k is split, a block for every single-consumer tile,
/// else as many as have a tile, or a run of k-tiles.
int64_t sm90Blocks(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
/// Threads of a block.
int sm90Threads(const Sm90GemmKnobs &knobs);

}  // namespace weft
