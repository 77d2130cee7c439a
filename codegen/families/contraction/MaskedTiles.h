// Tiles of scores that a block mask in the epilogue of their contraction leaves nothing of
// (kernel/BlockMask.h): a sampled product, whose result is stored whole. Kernel templates that are
// told so neither load nor multiply for such a tile, as for one behind the last token
// (TokenTiles.h): the mask gives its fill whatever it is given.
//
//   scores = contract q, keys;  seen = mask pattern scores;  exponentials = local_softmax seen
//                               ^ every result of the kernel comes of scores through this one
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/BlockMask.h"
#include "kernel/ContractionRegion.h"

#include <optional>
#include <string>

namespace weft {

/// One table for all heads, between queries and keys that are a side of the GEMM each.
struct MaskedTiles {
  const BlockTable *table = nullptr;
  std::string name = {};     ///< of the table in emitted text
  bool areRowsKeys = false;  ///< of the kernel template's GEMM, after the exchange of A and B

  /// The share of tiles of so many rows and columns that the table leaves something of.
  double seenShare(int64_t tileM, int64_t tileN) const;
  /// The function of `space` that makes the kernel template's argument of the table:
  /// "weft::sm80::maskedTiles<tile.m, tile.n, 512, 512, false>(blocks_0a1b2c3d)". `sides`: template
  /// arguments in front.
  std::string argument(const std::string &space, const std::string &sides) const;
};

/// Nothing where a result needs the products of every tile, for lack of such a mask between it and
/// the contraction; where the mask is of a chunk; and beside a prologue.
std::optional<MaskedTiles> maskedTiles(const Kernel &kernel, const ContractionRegion &region,
                                       bool isSwapped);

}  // namespace weft
