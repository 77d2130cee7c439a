// What tiles of sm_90a need and which GEMMs they take (device/sm90_gemm.cuh).
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

#include <string>

namespace weft {

struct ContractionRegion;

/// The GEMM as WGMMA takes it, also with several strides along a group of axes (Sm90Strides.h): the
/// operand of such a group must begin at multiples of 16 bytes.
Expected<GemmProblem, Reason> wgmmaProblem(const Kernel &kernel,
                                           const Configuration &configuration);
/// Whether a prologue rewrites k-tiles of an operand that TMA loads.
bool isTransformedInPlace(const GemmProblem &gemm);

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
/// `epilogueRegisters`: see codegen/families/contraction/EpilogueLimits.h.
std::string sm90TileRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs,
                              int epilogueRegisters);
/// Why no single-consumer tile supports the epilogue, whatever its layouts; empty if one does.
std::string singleConsumerEpilogueRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why accumulators of a lane do not hold both of each pair that a rotary embedding behind the GEMM
/// turns, by layouts, and by tiles; empty if they do, or if there is none.
std::string sm90RotaryRejection(const Kernel &kernel, const Configuration &configuration,
                                const ContractionRegion &region, bool isSwapped);
std::string sm90RotaryTileRejection(const ContractionRegion &region, const Sm90GemmKnobs &knobs);
/// Why this configuration of a kernel is not emitted: its layouts, its knobs, or both together.
/// Empty if it is.
std::string sm90Rejection(const Kernel &kernel, const Configuration &configuration,
                          const Sm90GemmKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Dynamic shared memory: stages of k-tiles, subtiles of C, partial sums of other blocks, barriers.
/// A single-consumer tile has no subtiles. `isTransformedInPlace`: a prologue rewrites k-tiles that
/// TMA loads, which takes one more barrier a stage.
int64_t sm90SharedBytes(const Sm90GemmKnobs &knobs, bool isTransformedInPlace = false);
/// Tiles that a block mask leaves nothing of, where tiles of such knobs are left out: of one CTA or
/// a cluster that shares B alone, with two consumers.
std::optional<MaskedTiles> sm90MaskedTiles(const Kernel &kernel, const ContractionRegion &region,
                                           const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
/// Tiles of C over all batch elements.
int64_t sm90Tiles(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
/// Device memory of the kernel's module for the accumulators of tiles that several CTAs share; 0
/// without stream-K.
int64_t streamKBytes(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
inline constexpr int64_t streamKPartialsLimit = int64_t(64) << 20;  ///< bytes of it (a choice)
/// K-tiles.
int64_t sm90KTiles(const GemmProblem &gemm);
/// Of the grid: a cluster for every tile with split-K, one CTA for every single-consumer tile, else
/// as many CTAs as have a tile, or k-tiles in stream-K.
int64_t sm90Blocks(const GemmProblem &gemm, const Sm90GemmKnobs &knobs);
/// Threads of a block.
int sm90Threads(const Sm90GemmKnobs &knobs);

}  // namespace weft
