// How kernels call the stream-K kernel template: with its arguments by name. sm90_stream_k.cuh
// includes this header and has streamKKernel, which is found there by the types of its arguments.
#pragma once

#include "weft/sm90_args.cuh"
#include "weft/sm90_stream_k_partials.cuh"

namespace weft::sm90 {

/// The whole kernel; launched with TileConfig::threads, TileConfig::sharedBytes and so many blocks.
template <typename T, GemmProblem gemm, Tile tile, int blocks, typename Arguments>
__device__ __forceinline__ void streamKGemm(const Arguments &args) {
  using E = ElementsOf<T>;
  static_assert(!Arguments::isTransformedA() && !Arguments::isTransformedB() &&
                !Arguments::isScaled() && Arguments::isEpilogueAlone());
  streamKKernel<E, gemm, tile, blocks>(tensorOf<const typename E::A>(args.a),
                                       tensorOf<const typename E::B>(args.b),
                                       tensorOf<typename E::C>(args.c), *args.partials,
                                       epilogueOpOf<typename E::C>(args), args.tokens);
}

}  // namespace weft::sm90
