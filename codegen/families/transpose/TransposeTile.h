// How a change of layout is cut into tiles. Axes that lie one after another in both layouts
// count as one dimension. A tile is a box: the innermost dimensions of the operand, as many as make
// a run of neighbours worth reading at once, and the innermost dimensions of the result, likewise.
// Inside, both sides are walked in vectors.
#pragma once

#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Configuration.h"

#include <string>
#include <vector>

namespace weft::codegen {

/// Kernel axes that one stride serves on either side.
struct MergedDimension {
  std::vector<AxisId> axes;  ///< slowest first
  int64_t extent = 1;
  int64_t from = 0, to = 0;  ///< element strides
  int64_t tile = 1;          ///< elements of it in a tile
  bool isCut() const { return extent % tile != 0; }
};

struct TransposeTile {
  std::vector<MergedDimension> dimensions;  ///< as the operand has them, slowest first
  int read = -1, write = -1;  ///< the dimension of stride 1 in the operand, in the result; -1: none
  int readWidth = 1, writeWidth = 1;  ///< elements an access along it
  int64_t elements() const;
  /// Dimensions with more than one element in the tile, fastest first in the operand, in the
  /// result.
  std::vector<int> byOperand() const, byResult() const;
  /// Elements from one tile element to the next along a dimension, where the tile is packed as the
  /// operand has it.
  int64_t strideInTile(int dimension) const;
  /// No tile pays: nothing to exchange, or rows common to both sides that are long enough to be
  /// copied.
  bool isCopy() const;
  int64_t elementBytes = 1;
};

/// Throws Error(unsupported) unless the body is one identity or transpose.
TransposeTile transposeTile(const Kernel &kernel, const Configuration &configuration,
                            const TransposeKnobs &knobs);

}  // namespace weft::codegen
