// The logarithms of sums of fused attention over packed tokens: one number a head and token, zero
// for tokens of no sequence.
//
// The kernel stores them to [head][query] (sm90_attention.cuh). What stands here in the place of
// that pointer finds the token that a query is, and drops queries behind the last token of their
// sequence, whose rows a tile has as well.
#pragma once

#include "weft/sm90_attention.cuh"

namespace weft::sm90 {

/// rowOf: float *(int head, int token).
template <int queries, typename Sequences, typename RowOf>
struct PackedLogSums {
  struct Row {
    float *to;  // nothing: of no token
    __device__ __forceinline__ void operator=(float logSum) const {
      if (to != nullptr) *to = logSum;
    }
  };
  Sequences sequences;
  RowOf rowOf;

  __device__ __forceinline__ explicit operator bool() const { return true; }
  __device__ __forceinline__ Row operator[](Offset place) const {
    const int head = int(place / queries), query = int(place % queries);
    const Sequence own = sequences.of(head);
    const bool isToken = query < own.count && own.first + query < Sequences::rows;
    return {isToken ? rowOf(head, own.first + query) : nullptr};
  }
};

/// The arguments of attention() with those in the place of the pointer.
template <typename Args, typename LogSums>
struct PackedLogSumsArgs : Args {
  LogSums logSums;
};

/// The whole kernel. Rows of no sequence are zeroed first, as long as all threads have registers.
template <typename T, AttentionProblem problem, AttentionTile tile, typename RowOf, typename Args>
__device__ __forceinline__ void attentionWithLogSums(const RowOf &rowOf, const Args &args) {
  using LogSums = PackedLogSums<problem.queries, decltype(Args::sequences), RowOf>;
  zeroUnused<1, problem.heads, false>(args.sequences, rowOf, int(threadIdx.x),
                                      AttentionConfig<problem, tile>::threads);
  attention<T, problem, tile>(
      PackedLogSumsArgs<Args, LogSums>{args, LogSums{args.sequences, rowOf}});
}

}  // namespace weft::sm90
