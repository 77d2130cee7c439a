// What each kind of attention would take where a plan has one, and from which length on the fused
// kind is the fastest. Every figure is of a plan that is decided anew for the attention alone. No
// MLIR.
//
//    unfused      scores, softmax, weighted sum: scores and probabilities cross memory
//    decomposed   the softmax in local softmax (LS), reduction over sub-vectors (IR) and global
//                 scaling (GS), one kernel each
//    recomposed   LS in the epilogue of the first GEMM, GS in the prologue of the second
//    fused        one kernel; no score crosses memory
//
// Invariant: kinds are compared by prices of one source: where one of two is estimated alone, both
// are by estimates.
#pragma once

#include "kernel/AttentionChoice.h"
#include "kernel/Expected.h"
#include "passes/decide/AttentionFigures.h"
#include "passes/decide/Decide.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft::decision {

constexpr std::array pricedKinds = {AttentionChoice::unfused, AttentionChoice::decomposed,
                                    AttentionChoice::recomposed, AttentionChoice::fused};

struct PricedKind {
  AttentionChoice kind;
  std::optional<KindFigures> figures;
  std::string rejection;  ///< why there are none
};

/// Neighbours of the lengths that are asked.
struct LengthRange {
  int64_t from = 0, to = 0;
};

/// At which lengths of keys the fused kind is at least as fast as another.
struct Crossover {
  AttentionChoice kind;
  std::vector<LengthRange> ranges;  ///< apart from each other, in order
  std::string whyNone;              ///< why none was asked
  /// The length from which it is so at all that were asked; nothing: it is not at the last.
  std::optional<int64_t> length() const;
};

/// The workspace of the fused kind over lengths, as the line of least squares.
struct WorkspaceSlope {
  int lengths = 0;           ///< at which the kind has a plan; two at least
  double bytesPerToken = 0;  ///< a token is a key, with a query where there are as many
  double deviation = 0;      ///< the largest from the line, of the greatest workspace
};

struct AttentionPrices {
  std::vector<PricedKind> kinds;  ///< pricedKinds
  std::vector<Crossover> crossovers;
  std::optional<WorkspaceSlope> fusedWorkspace = {};  ///< at the lengths of the crossovers
  std::string whyNoLengths;  ///< why no other length was asked; empty where some were
};

/// Lengths at which crossovers are looked for: powers of two between these.
constexpr int64_t leastLength = 64, mostLength = 65536;

/// Queries and keys of an attention.
struct Lengths {
  int64_t queries = 0, keys = 0;
  bool operator==(const Lengths &) const = default;
};

/// One kind of an attention, alone, as something to decide.
struct KindQuestion {
  std::shared_ptr<const void> owner;  ///< of what the problem refers to
  Problem problem;
  Options options;
  std::optional<ExpectedFill> fill;  ///< at which its prices are, where it packs tokens
};

/// An attention as whoever has its graph asks for its prices.
struct AttentionQuestion {
  AttentionShape shape;
  bool isEstimated = false;  ///< its prices are estimates in any case
  /// A kind at these lengths; `isEstimated`: by the analytic model, whatever was measured. Throws
  /// Error(unsupported) or Error(badInput) where the attention has no graph for it.
  std::function<KindQuestion(AttentionChoice kind, const Lengths &lengths, bool isEstimated)> ask;
  /// Why the fused kind has no graph at these lengths; empty where it has.
  std::function<std::string(const Lengths &lengths)> lengthsRejection;
};

/// Every kind at the attention's own lengths, and where there is a fused one, from which length on
/// it is the fastest.
AttentionPrices attentionPrices(const AttentionQuestion &question);

}  // namespace weft::decision
