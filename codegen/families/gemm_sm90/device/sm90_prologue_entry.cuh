// How kernels call the GEMM kernel template with an operand that is transformed on load: with its
// arguments by name. sm90_prologue.cuh includes this header and has prologueKernel, which is found
// there by the types of its arguments.
#pragma once

#include "weft/sm90_args.cuh"

namespace weft::sm90 {

/// The whole kernel of operands and a result of T, one operand transformed of elements of type Raw;
/// launched with TileConfig::threads and PrologueConfig::sharedBytes, as many blocks as
/// sm90_gemm.cuh says.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, typename Arguments>
__device__ __forceinline__ void prologueGemm(const Arguments &args) {
  static_assert(Arguments::isTransformedA() != Arguments::isTransformedB() &&
                !Arguments::isScaled() && !Arguments::isStreamK() && !Arguments::reduces());
  const auto epilogueOp = epilogueOpOf<T>(args);
  if constexpr (Arguments::isTransformedA())
    prologueKernel<T, Raw, gemm, tile, true>(tensorOf<const Raw>(args.a), tensorOf<const T>(args.b),
                                             tensorOf<T>(args.c), args.transformA, epilogueOp);
  else
    prologueKernel<T, Raw, gemm, tile, false>(tensorOf<const Raw>(args.b),
                                              tensorOf<const T>(args.a), tensorOf<T>(args.c),
                                              args.transformB, epilogueOp);
}

}  // namespace weft::sm90
