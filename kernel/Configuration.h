// A configuration: a layout for every operand and result of a kernel, plus the knobs of one kernel
// family. Plain data, compared member by member, printed one way; the plan stores exactly this.
#pragma once

#include "kernel/Kernel.h"

#include <span>
#include <string>
#include <variant>
#include <vector>

namespace weft {

/// Where the elements of one tensor lie. `order` lists dimension positions of the value (not kernel
/// axes), slowest first. Dense unless `strides` is given (elements, one per dimension in logical
/// order; a view of a stacked tensor).
struct Layout {
  std::vector<int> order;
  std::vector<int64_t> strides = {};
  int64_t offset = 0;      ///< elements from the start of the buffer
  int64_t alignment = 16;  ///< bytes that the address of element zero is known to be a multiple of
  bool operator==(const Layout &) const = default;
  auto operator<=>(const Layout &) const = default;
};

/// Identity order, dense.
Layout rowMajor(size_t rank);
/// Element strides per dimension in logical order, given the extents per dimension in logical
/// order.
std::vector<int64_t> stridesOf(const Layout &layout, const std::vector<int64_t> &extents);
/// The axis names in layout order: "h,b,j,k" (single letters are joined without commas: "hbjk").
std::string print(const Layout &layout, const Kernel &kernel, const Value &value);
/// All rank! dense layouts, in lexicographic order.
std::vector<Layout> allDenseLayouts(size_t rank);

/// How a reduction is spread over the machine (section 4 of "Data Movement Is All You Need").
///   sequential    one thread walks the reduced axes
///   warp, block   neighbouring threads lie along a reduced axis and share one row
///   ...Columns    neighbouring threads lie along a kept axis, and threads further apart share each
///                 column: lanes of one warp, threads of one block, the blocks of one cluster
///                 (sm_90 and later), or any blocks of the grid, whose partial results the last one
///                 adds
enum class ReductionMapping : uint8_t {
  none,
  sequential,
  warp,
  block,
  warpColumns,
  blockColumns,
  clusterColumns,
  gridColumns
};
/// "none", "warp", "cluster-columns".
std::string_view nameOf(ReductionMapping mapping);
inline constexpr ReductionMapping reductionMappings[] = {
    ReductionMapping::none,           ReductionMapping::sequential,  ReductionMapping::warp,
    ReductionMapping::block,          ReductionMapping::warpColumns, ReductionMapping::blockColumns,
    ReductionMapping::clusterColumns, ReductionMapping::gridColumns};

/// How a block-mapped reduction combines the partial results of its threads: warp shuffles and then
/// shared memory, a tree in shared memory, or one thread that walks the shared array.
enum class BlockCombine : uint8_t { shuffle, tree, linear };
std::string_view nameOf(BlockCombine combine);
inline constexpr BlockCombine blockCombines[] = {BlockCombine::shuffle, BlockCombine::tree,
                                                 BlockCombine::linear};

/// Loop family: element-wise, normalization, reduction kernels in any layout.
struct LoopKnobs {
  int vectorAxis = -1;  ///< kernel axis along which one thread takes `vectorWidth` neighbours; -1:
                        ///< scalar kernel (rank 0)
  int vectorWidth =
      1;  ///< elements a thread takes along vectorAxis: 1, 2, 4, 8 (at most 16 bytes an access)
  int laneAxis = -1;  ///< kernel axis along which neighbouring threads lie (equal to vectorAxis, or
                      ///< another axis)
  ReductionMapping reduction = ReductionMapping::none;  ///< for the reduced axis
  int threads = 128;                                    ///< threads a block
  int threadsPerRow = 1;  ///< threads of a block that share one row or column; 1 where none do
  BlockCombine combine = BlockCombine::shuffle;  ///< for block reductions; shuffle for every other
  int blocksPerRow = 1;  ///< blocks that share one column when the reduction is clusterColumns or
                         ///< gridColumns, else 1
  auto operator<=>(const LoopKnobs &) const = default;
};

bool isRowMapping(ReductionMapping mapping);  ///< warp, block
bool isColumnMapping(
    ReductionMapping mapping);  ///< warpColumns, blockColumns, clusterColumns, gridColumns

/// Transpose family: one tensor from one layout to another through a shared-memory tile.
struct TransposeKnobs {
  int tile = 32;        ///< elements on each side of the tile
  int vectorWidth = 1;  ///< elements an access
  int threads = 256;
  auto operator<=>(const TransposeKnobs &) const = default;
};

/// Plain contraction family (placeholder until the tensor-core families exist): tiled FMA, correct
/// everywhere.
struct FmaGemmKnobs {
  int tileM = 64, tileN = 64, tileK = 16;  ///< elements of the block's tile
  int threadM = 4, threadN = 4;            ///< elements a thread accumulates
  auto operator<=>(const FmaGemmKnobs &) const = default;
};

/// How the two consumer warpgroups of a block divide the work: both share a tile, half of its rows
/// each; or each has a separate tile and multiplies while the other stores. Narrow: one consumer,
/// one tile a block, whose sums go straight to memory.
enum class Sm90Schedule : uint8_t { cooperative, pingPong, singleConsumer };
/// "cooperative", "ping-pong", "single-consumer".
std::string_view nameOf(Sm90Schedule schedule);
inline constexpr Sm90Schedule sm90Schedules[] = {Sm90Schedule::cooperative, Sm90Schedule::pingPong,
                                                 Sm90Schedule::singleConsumer};

/// Tensor-core contractions of sm_90a: one persistent kernel of a producer and two consumer
/// warpgroups (sm90_gemm.cuh), or for few rows or few tiles a smaller one
/// (sm90_single_consumer.cuh), to which epilogueStages, groupM and blocks mean nothing.
struct Sm90GemmKnobs {
  Sm90Schedule schedule = Sm90Schedule::cooperative;
  int tileM = 128, tileN = 128;  ///< elements of C: 64, 128, 256 and 64, 128, 192, 256; narrow: 32
                                 ///< or 64 and 8, 16, .. 48, or those exchanged
  int stages = 4;                ///< slices of A and B, 64 of k each, that shared memory holds
  int epilogueStages = 2;        ///< subtiles of 64 x 64 elements of C in flight, a consumer
  int groupM = 8;                ///< tiles along m that are taken together before the next along n
  int blocks =
      132;  ///< at most, each alone on its multiprocessor; block i takes tiles i, i + blocks, ...
  int splitK = 1;  ///< blocks of a cluster that share the k of one tile: 1, 2, 4, 8; above 1 every
                   ///< tile has a cluster
  int multicastB = 1;  ///< blocks of a cluster that take neighbouring tiles along m and load
                       ///< k-tiles of B for each other: 1, 2
  int streamK = 0;     ///< 1: every block takes an equal run of the slices of all tiles, and shares
                       ///< those that it ends in (sm90_stream_k.cuh)
  auto operator<=>(const Sm90GemmKnobs &) const = default;
};

/// Tensor-core contractions from sm_80 on: one block a tile, copies into a ring of stages,
/// mma.sync (sm80_gemm.cuh).
struct Sm80GemmKnobs {
  int tileM = 128, tileN = 128;  ///< elements of C a block: 32, 64, 128, 256
  int tileK = 32;                ///< of k in a slice of A and B: 32 or 64
  int stages = 4;                ///< slices that shared memory holds
  int warpsM = 2, warpsN = 2;    ///< warps of a block along both sides of its tile
  int groupM = 8;                ///< tiles along m that are taken together before the next along n
  auto operator<=>(const Sm80GemmKnobs &) const = default;
};

/// Zero-cost family: slices and concatenations that are views of one buffer, and parameters packed
/// at load.
struct ViewKnobs {
  auto operator<=>(const ViewKnobs &) const = default;
};

/// cuBLASLt family: one GEMM by NVIDIA's library. The algorithm is kept as the attributes
/// that the library names (cublasLtMatmulAlgoConfigAttributes_t), from which it is made again and
/// checked at load; with algorithm -1 the library's heuristic is asked at load and its first
/// candidate taken.
struct LibraryKnobs {
  int libraryVersion =
      0;  ///< of the library that listed the algorithm, 130200 for 13.2.0; 0 with algorithm -1
  int algorithm = -1;       ///< algorithm id; -1: the heuristic's first candidate at load
  int tile = 0;             ///< id of the tile
  int stages = 0;           ///< id of the stages of the pipeline
  int splitK = 0;           ///< parts of k; 0 and 1: whole
  int reductionScheme = 0;  ///< how the parts of k are added
  int swizzle = 0;          ///< order of the blocks
  int customOption = 0;     ///< meaning depends on the algorithm
  int innerShape = 0;       ///< id of the instruction's shape
  int clusterShape = 0;     ///< id of the cluster
  int workspaceBytes = 0;   ///< device memory that the algorithm needs
  auto operator<=>(const LibraryKnobs &) const = default;
};

/// "13.2.0" for 130200.
std::string libraryVersionText(int version);

using Knobs = std::variant<LoopKnobs, TransposeKnobs, FmaGemmKnobs, ViewKnobs, LibraryKnobs,
                           Sm90GemmKnobs, Sm80GemmKnobs>;

/// The kernel families, in the order of Knobs; their schedules' fields: kernel/Schedule.h.
enum class Family : uint8_t { loop, transpose, gemmFma, view, library, gemmSm90, gemmSm80 };
/// "loop", "transpose", "gemm-fma", "view", "cublaslt", "gemm-sm90", "gemm-sm80".
std::string_view nameOf(Family family);
inline Family familyIdOf(const Knobs &knobs) { return Family(knobs.index()); }

struct Configuration {
  std::vector<Layout> inputs = {};   ///< one per Kernel::inputs
  std::vector<Layout> outputs = {};  ///< one per Kernel::outputs
  Knobs knobs;
  auto operator<=>(const Configuration &) const = default;
};

/// The name of the family.
std::string_view familyOf(const Knobs &knobs);
/// Whether kernels of the family are CUDA text of ours: not views, which run nothing, and not
/// products of a library.
bool hasText(const Knobs &knobs);
/// Bumped when the speed of a family's kernels changes; part of profile keys.
int familyVersion(std::string_view family);
/// Readable and unambiguous: "vector 8 x f16 along i, one warp a row, 4 rows a block".
std::string describe(const Kernel &kernel, const Knobs &knobs);

/// The full key text of kernel + configuration + target: canonical body, extents, dtypes, layouts
/// after merging adjacent axes, knobs, architecture. What the cubin cache and the profile store
/// hash.
std::string canonicalText(const Kernel &kernel, const Configuration &configuration,
                          std::string_view architecture);

}  // namespace weft
