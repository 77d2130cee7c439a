// How the threads of a block combine what each has of a row.
#pragma once
#ifndef WEFT_KERNEL_BLOCK_COMBINE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_BLOCK_COMBINE_H

#include <cstdint>
#include <string_view>

namespace weft {

/// Warp shuffles and then shared memory, a tree in shared memory, or one thread that walks the
/// shared array.
enum class BlockCombine : uint8_t { shuffle, tree, linear };
inline constexpr BlockCombine blockCombines[] = {BlockCombine::shuffle, BlockCombine::tree,
                                                 BlockCombine::linear};

constexpr std::string_view nameOf(BlockCombine combine) {
  switch (combine) {
    case BlockCombine::shuffle: return "shuffle";
    case BlockCombine::tree: return "tree";
    case BlockCombine::linear: return "linear";
  }
  return "";
}

}  // namespace weft

#endif  // WEFT_KERNEL_BLOCK_COMBINE_H
