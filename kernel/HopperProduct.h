// One contraction as the skeleton kernel of sm_90a takes it
// (codegen/device/hopper_contraction.cuh): C is contiguous along n, A and B each along k or along
// their outer axis; 8-bit floats and tf32 along k alone. A result that is contiguous along m is
// computed as C^T = B^T A^T. Where groups of axes do not merge, the copy engine counts through
// their strides (kernel/HopperStrides.h).
#pragma once

#include "kernel/FactoredProduct.h"
#include "kernel/LibraryProduct.h"

#include <optional>
#include <string>

namespace weft {

struct ContractionRegion;

/// Element strides of an operand along its outer axis (m or n), k and the batch; one of the first
/// two is 1. Where a group has several strides these are the fastest, and all stand in the factors
/// of the groups.
struct HopperOperand {
  size_t input = 0;  ///< position in Kernel::inputs
  int64_t outer = 0, k = 0, batch = 0;
  bool isByEngine =
      true;  ///< whether the copy engine can load it: rows start at multiples of 16 bytes
  GroupFactors outerFactors = {}, kFactors = {},
               batchFactors = {};  ///< empty where each group has one stride
  bool hasSeveralStrides() const { return !outerFactors.empty(); }
  bool isScaled = false;  ///< of what is read, by one factor a row and run of whole slices of k:
                          ///< sums of products are scaled in its place
  bool isMade = false;    ///< of what is read, by ops before the contraction
                          ///< (kernel/ContractionPrologue.h); strides are those of what is read
  bool isAlongK() const { return k == 1; }
  /// Elements from a row to the next.
  int64_t pitch() const { return isAlongK() ? outer : k; }
  /// Whether rows start at odd multiples of 16 bytes: their 128 bytes straddle sectors of 32, and
  /// arrive half as fast.
  bool straddlesSectors(int64_t elementBytes) const {
    return isByEngine && !isMade && pitch() * elementBytes % 32 != 0;
  }
  bool operator==(const HopperOperand &) const = default;
};

/// In the skeleton's terms, after the exchange of A and B.
struct HopperProduct {
  bool isSwapped = false;  ///< its A is the contraction's B
  int64_t batch = 1, m = 1, n = 1, k = 1;
  HopperOperand a = {}, b = {};
  int64_t strideCm = 0, batchStrideC = 0;
  GroupFactors mFactors = {}, nFactors = {}, batchFactors = {};  ///< of C, as those of operands
  bool isByEngine = true;  ///< whether the copy engine can store C: elements of 16 bits alone
  DType operandType = DType::f16;  ///< of A, as the product reads it; B's is as wide
  bool operator==(const HopperProduct &) const = default;
  /// Whether every panel of C leaves by the copy engine, which clips columns at 16 bytes only.
  bool isWhollyByEngine() const { return isByEngine && n % 8 == 0; }
  bool resultHasSeveralStrides() const { return !mFactors.empty(); }
  /// Whether any of A, B and C has.
  bool hasSeveralStrides() const {
    return a.hasSeveralStrides() || b.hasSeveralStrides() || resultHasSeveralStrides();
  }
  bool isAnyMade() const { return a.isMade || b.isMade; }
  bool isScaled() const { return a.isScaled; }
  /// Elements of k in a slice, whose rows are 128 bytes: 64 of 16 bits, 128 of 8, 32 of tf32.
  int64_t depth() const { return 128 / sizeOf(operandType); }
};

struct HopperProductAnswer {
  std::optional<HopperProduct> product = {};
  std::string refusal = {};  ///< why there is none: names the operand and the limit
};
/// Under the layouts of a configuration, of operands and results of the types that the family
/// takes. Rows that start at other addresses than multiples of 16 bytes take a slower path and are
/// no refusal, unless a group of the operand has several strides.
HopperProductAnswer hopperProduct(const Kernel &kernel, const Configuration &configuration);
/// The same for products of a warp (ampere_contraction.cuh), which take tf32 in every order, too.
HopperProductAnswer warpProduct(const Kernel &kernel, const Configuration &configuration);

/// The sides of a narrow tile (hopper_narrow.cuh): `rows` of the operand that lies along the 64
/// rows of the instruction, `columns` of the other one.
struct NarrowSides {
  int rows = 64, columns = 8;
  bool isAlongM = true;  ///< whether rows are rows of C, of operand A; else columns, of B
  bool operator==(const NarrowSides &) const = default;
};
/// The longer side of the tile is that of the rows, and along m where both are equal.
NarrowSides narrowSides(const HopperContractionKnobs &knobs);

/// Why no kernel has such knobs, whatever it computes; empty if they are legal.
std::string hopperKnobsRefusal(const HopperContractionKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Why this product has no kernel with such knobs, which are legal by themselves; empty if it has.
/// `epilogueRegisters`: see kernel/ContractionRegion.h.
std::string hopperTileRefusal(const HopperProduct &product, const HopperContractionKnobs &knobs,
                              int epilogueRegisters);
/// Why no narrow tile takes what follows the product, whatever its layouts; empty if one does.
std::string narrowEpilogueRefusal(const Kernel &kernel, const ContractionRegion &region);
/// Why this configuration of a kernel is not emitted: its layouts, its knobs, or both together.
/// Empty if it is.
std::string hopperRefusal(const Kernel &kernel, const Configuration &configuration,
                          const HopperContractionKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Dynamic shared memory: stages of slices, panels of C, partial sums of other blocks, barriers. A
/// narrow tile has no panels. `madeByEngine`: of a product one of whose operands is made of slices
/// that the copy engine brings, which have a barrier more a stage.
int64_t hopperSharedBytes(const HopperContractionKnobs &knobs, bool madeByEngine = false);
/// Whether an operand of this product is made of slices that the copy engine brings.
bool isMadeByEngine(const HopperProduct &product);
/// Tiles of C over all members of the batch.
int64_t hopperTiles(const HopperProduct &product, const HopperContractionKnobs &knobs);
/// Device memory of the kernel's module for the sums of tiles that blocks share; 0 where they share
/// none (streams).
int64_t hopperStreamBytes(const HopperProduct &product, const HopperContractionKnobs &knobs);
inline constexpr int64_t streamPartialsLimit = int64_t(64) << 20;  ///< bytes of it (a choice)
/// Slices of k.
int64_t hopperSlices(const HopperProduct &product);
/// Of the grid: a cluster for every tile where k is split, a block for every narrow tile, else as
/// many as have a tile, or a run of slices.
int64_t hopperBlocks(const HopperProduct &product, const HopperContractionKnobs &knobs);
/// Threads of a block.
int hopperThreads(const HopperContractionKnobs &knobs);

}  // namespace weft
