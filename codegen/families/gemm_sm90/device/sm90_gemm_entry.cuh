// How kernels call the GEMM kernel template: with its arguments by name. sm90_gemm.cuh includes
// this header and has gemmKernel, which is found there by the types of its arguments.
#pragma once

#include "weft/sm90_args.cuh"

namespace weft::sm90 {

/// The whole kernel of a T, or of Elements<A, B, C>; launched with TileConfig::threads and
/// TileConfig::sharedBytes, at most as many blocks as tiles or multiprocessors, or a cluster for
/// every tile.
template <typename T, GemmProblem gemm, Tile tile, typename Arguments>
__device__ __forceinline__ void runGemm(const Arguments &args) {
  using E = ElementsOf<T>;
  static_assert(!Arguments::isTransformedA() && !Arguments::isTransformedB() &&
                !Arguments::isStreamK());
  gemmKernel<E, gemm, tile>(tensorOf<const typename E::A>(args.a),
                            tensorOf<const typename E::B>(args.b), tensorOf<typename E::C>(args.c),
                            args.scaling, epilogueOpOf<typename E::C>(args), args.tokens);
}

}  // namespace weft::sm90
