// What each kind of attention would take where a plan has one, and from which length on the fused
// kind is the fastest. Every figure is of a plan that is decided anew for the attention alone
// (AttentionSites.h), its arguments and results in any layout, by the prices of the request.
//
//    unfused      scores, softmax, weighted sum: scores and probabilities cross memory
//    decomposed   the softmax in local softmax (LS), reduction over sub-vectors (IR) and global
//                 scaling (GS), one kernel each
//    recomposed   LS in the epilogue of the first GEMM, GS in the prologue of the second
//    fused        one kernel; no score crosses memory
#pragma once

#include "plan/PlanBuilder.h"
#include "tools/driver/AttentionSites.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Request.h"
#include "tools/driver/SoftmaxAccount.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weft::driver {

constexpr std::array pricedKinds = {AttentionChoice::unfused, AttentionChoice::decomposed,
                                    AttentionChoice::recomposed, AttentionChoice::fused};

/// A bound of the error of one element of the output against exact arithmetic on the same inputs,
/// over the greatest magnitude of the values: constant + perScore x the greatest magnitude of a
/// score. It counts the roundings of what crosses memory and of what tensor cores read, those of
/// tf32 as if all products of a score had its sign; those of sums in fp32 are left out.
struct RoundingBound {
  double constant = 0, perScore = 0;
};

/// The fused kernel with other tiles, at the best of its other knobs.
struct PricedTile {
  int64_t queries = 0, keys = 0;  ///< of a tile
  double seconds = 0;
  bool isMeasured = false;
  int64_t l2Bytes = 0;
};

struct KindFigures {
  double seconds = 0;       ///< of its kernels
  double graphSeconds = 0;  ///< as one graph; by which kinds are compared
  int64_t dramBytes = 0;    ///< what its kernels move, without what they find in L2
  int64_t l2Bytes = 0;      ///< what they request from L2, GEMMs by their tiles
  /// Of the fused kind: (d + dv) keys ceil(queries / tile rows) elements a head for keys and
  /// values, beside queries and output, as if masks excluded nothing; of others 0.
  int64_t l2Theory = 0;
  int64_t tileRows = 0;                ///< of the fused kind
  std::vector<PricedTile> tiles = {};  ///< of the fused kind, by queries and keys; measured ones
                                       ///< alone where there are any
  int64_t workspaceBytes = 0;
  RoundingBound error = {};
  SoftmaxAccount softmax = {};
  int chunks = 1, launches = 0, measured = 0;  ///< of the launches
  std::vector<std::string> kernels = {};       ///< what they compute
  /// Selection does not consider it: the prices are of the analytic model, and why.
  std::string notConsidered = {};
};

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

struct SitePrices {
  AttentionSite site;
  std::vector<PricedKind> kinds;  ///< pricedKinds
  std::vector<Crossover> crossovers;
  std::string whyNoLengths;  ///< why no other length was asked; empty where some were
};

/// Lengths at which crossovers are looked for: powers of two between these.
constexpr int64_t leastLength = 64, mostLength = 65536;

/// The price of a kind of a site at a length of queries and keys. `known`: of other kinds at the
/// same lengths, which have kernels in common with it (Compilation::sharePrices).
PricedKind priceKind(const Request &request, const AttentionSite &site, AttentionChoice kind,
                     int64_t queries, int64_t keys, std::vector<SharedPrices> &known);
SitePrices priceSite(const Request &request, const AttentionSite &site);

/// Bytes that a kernel requests from L2: of GEMMs and fused attentions by their tiles, of others
/// what they move.
int64_t l2BytesOf(const ChosenKernel &kernel);

}  // namespace weft::driver
