// The element-wise ops of the backward pass of a fused attention as functions that its kernel
// templates call, whatever the family. With the types of weft/score_gradients.cuh:
//
//    row(head, query)          what all scores of a row read of tensors of rows: ScoreRow
//    gradients(s, dKept, row, head, query, key, isKept)   ScoreGradients: all ops in order, in fp32
//    gradientsWithoutMasks     the same where every mask is known to keep the score
//    coverage(head, firstQuery, lastQuery, firstKey, lastKey)   as AttentionScore.h has it
//    dropout(head, query, key) which of the eight scores of a fragment are kept: Kept<8>
//
// s and dKept are sums of products without their contractions' scales, which the functions apply:
// that of the scores is part of the exponential's factor where the score ops are masks alone.
//
// **Rows.** What runs along no keys, is f32 and is read at the element's own coordinates is of a
// row: first minus the logarithm of the row's sum, to base 2, then the others, such as the sums of
// d_output * output.
//
// **Masks** of scores are those of AttentionScore.h. An op behind the probability that puts zeros
// where the condition of such a mask excludes the score is the mask's derivative, and left out
// where the mask is.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/families/attention/ScoreOps.h"
#include "codegen/families/attention_backward/AttentionBackwardProblem.h"

#include <string>
#include <vector>

namespace weft::codegen {

/// What the family has decided and named.
struct GradientContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const AttentionBackwardRegion &region;
  const AttentionBackwardProblem &problem;
  Names &names;
  std::vector<std::string> axes;    ///< constants of type int with the extents of the kernel's axes
  std::vector<std::string> inputs;  ///< pointers, one per Kernel::inputs
  std::string dScores = {};         ///< pointer to what problem.dScores is stored to
  /// Of gradients(). Of rows, which it asks for behind the last query, too, nothing is read there.
  BehindEnds behindEnds = BehindEnds::nothing;
  /// Whether the two neighbours that a thread stores together are keys, or queries.
  bool arePairsOfKeys = true;
};

struct AttentionGradients {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  std::vector<Parameter> parameters = {};  ///< of dropout, behind the kernel's tensors
  Block functions = {};                    ///< statements that define what the next names say
  /// `weft::ScoreRow<rowFloats> (int head, int query)`. A query >= queries reads nothing. Of packed
  /// tokens (int head, int token) with a token that there is.
  std::string row;
  int rowFloats = 1;
  /// `weft::ScoreGradients (float s, float dKept, const weft::ScoreRow<rowFloats> &row, int head,
  /// int query, int key, bool isKept)`. Scores outside the tensor give any numbers; whether they
  /// may be asked for says GradientContext::behindEnds.
  std::string gradients, gradientsWithoutMasks;
  /// As AttentionScore::coverage.
  std::string coverage;
  /// `weft::Kept<8> (int head, int query, int key)` of the fragment whose first element this is,
  /// with queries as its rows, or with keys as its rows. "weft::NoDropout{}" without dropout.
  std::string dropout, dropoutTransposed;
  /// `void (int head, int query, int key, unsigned pair)`: stores the gradients of two scores, this
  /// one and the next key or query, as far as they are inside. "weft::NoScoreStore{}" where none
  /// are stored.
  std::string storeScores;
  bool hasMasks = false;  ///< coverage says more than full
};

/// Why the element-wise ops are not emitted: as scoreRejection(); dropouts that differ, or that
/// draw along other last axes than queries and keys. Empty if they are.
std::string gradientRejection(const Kernel &kernel, const AttentionBackwardRegion &region,
                              const AttentionBackwardProblem &problem);

/// Numbers of a ScoreRow.
int rowFloatsOf(const Kernel &kernel, const AttentionBackwardRegion &region);

/// gradientRejection() is empty.
AttentionGradients attentionGradients(const GradientContext &context);

/// Element-wise ops that are computed for every score, for prices: no masks, casts or derivatives
/// of masks.
int valueOpsOfGradients(const Kernel &kernel, const AttentionBackwardRegion &region,
                        const AttentionBackwardProblem &problem);

}  // namespace weft::codegen
