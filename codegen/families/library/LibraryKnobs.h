// The knobs of the cuBLASLt family, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

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
  int splitK = 0;           ///< partial GEMMs along k; 0 and 1: none
  int reductionScheme = 0;  ///< how the split-K partials are added
  int swizzle = 0;          ///< order of the blocks
  int customOption = 0;     ///< meaning depends on the algorithm
  int innerShape = 0;       ///< id of the instruction's shape
  int clusterShape = 0;     ///< id of the cluster
  int workspaceBytes = 0;   ///< device memory that the algorithm needs
  static const Family &family();
  auto operator<=>(const LibraryKnobs &) const = default;
};

/// "13.2.0" for 130200.
std::string libraryVersionText(int version);

extern const Family libraryFamily;
inline const Family &LibraryKnobs::family() { return libraryFamily; }

}  // namespace weft
