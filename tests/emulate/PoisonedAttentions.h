// Fused attentions and backward passes some of whose operands are no numbers within tiles of scores
// that masks leave in part, and the elements of results that these may reach: the rule of
// ir/SPEC.md ("Contractions of a softmax").
#pragma once

#include "tests/emulate/AttentionPoison.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <algorithm>
#include <array>
#include <set>

namespace weft::emulate {

/// Keys that a query sees under the window masks here.
inline constexpr int64_t windowLeft = 20, windowRight = 7;

/// Which query sees which key, and which tiles of scores a kernel reads for that: those with a
/// score that masks leave, at most `side` queries and keys each. Under masks by counts that are
/// known at run time alone, it reads no key behind the last one that is seen.
class SeenScores {
public:
  static constexpr int64_t side = 128;
  using Sees = std::function<bool(int64_t batchElement, int64_t query, int64_t key)>;

  SeenScores(int64_t batch, int64_t queries, int64_t keys, const Sees &sees,
             bool endsAtCounts = false)
      : batch(batch),
        queries(queries),
        keys(keys),
        seen(size_t(batch * queries * keys)),
        ends(size_t(batch), endsAtCounts ? 0 : keys) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t j = 0; j < queries; ++j)
        for (int64_t k = 0; k < keys; ++k)
          if (sees(b, j, k)) {
            seen[placeOf(b, j, k)] = true;
            seeing.insert({b, j});
            ends[size_t(b)] = std::max(ends[size_t(b)], k + 1);
            tiles.insert({b, j / side, k / side});
          }
  }
  bool sees(int64_t b, int64_t query, int64_t key) const { return seen[placeOf(b, query, key)]; }
  bool reads(int64_t b, int64_t query, int64_t key) const {
    return key < ends[size_t(b)] && tiles.contains({b, query / side, key / side});
  }
  /// The first tile of keys, of a query that sees none: a backward pass may have its zeros there.
  bool isOfBlind(int64_t b, int64_t query, int64_t key) const {
    return key < std::min(side, ends[size_t(b)]) && !seeing.contains({b, query});
  }
  const int64_t batch, queries, keys;

private:
  size_t placeOf(int64_t b, int64_t query, int64_t key) const {
    return size_t((b * queries + query) * keys + key);
  }
  std::vector<bool> seen;
  std::vector<int64_t> ends;  ///< of keys that are read, by batch element
  std::set<std::array<int64_t, 2>> seeing;
  std::set<std::array<int64_t, 3>> tiles;
};

using HeldPositions = std::function<bool(int64_t batchElement, int64_t position)>;

/// One of the inputs of an attention; what it may reach follows from the rule.
inline Poison forwardPoison(const std::string &input, const SeenScores &scores,
                            const HeldPositions &isHeld) {
  const bool isOfKeys = input == "keys" || input == "v", isValue = input == "v";
  const auto mayReach = [=](std::string_view output, const CoordinateOf &at) {
    const int64_t b = at('b'), query = at('j');
    if (!isOfKeys) return isHeld(b, query);
    if (isValue && output == "log_sums") return false;
    for (int64_t key = 0; key < scores.keys; ++key)
      if (isHeld(b, key) && (isValue ? scores.reads(b, query, key) : scores.sees(b, query, key)))
        return true;
    return false;
  };
  return {.inputs = {input}, .axis = isOfKeys ? 'k' : 'j', .isHeld = isHeld, .mayReach = mayReach};
}

/// The same of a backward pass.
inline Poison backwardPoison(const std::string &input, const SeenScores &scores,
                             const HeldPositions &isHeld) {
  const bool isOfKeys = input == "keys" || input == "v";
  // The gradient that sums products of it with what masks make zero.
  std::string_view summed = "d_v";
  if (input == "keys") summed = "d_q";
  if (input == "q") summed = "d_k";
  if (input == "v" || input == "row_sums") summed = "";
  const bool reachesProbabilities = input == "q" || input == "keys" || input == "log_sums";
  const auto mayReach = [=](std::string_view output, const CoordinateOf &at) {
    const int64_t b = at('b');
    if (output == "d_scores") {
      const int64_t query = at('j'), key = at('k');
      return isHeld(b, isOfKeys ? key : query) && scores.sees(b, query, key);
    }
    const bool isOfQueries = output == "d_q";
    const int64_t own = at(isOfQueries ? 'j' : 'k'),
                  others = isOfQueries ? scores.keys : scores.queries;
    for (int64_t other = 0; other < others; ++other) {
      const int64_t query = isOfQueries ? own : other, key = isOfQueries ? other : own;
      if (!isHeld(b, isOfKeys ? key : query)) continue;
      if (output == summed && (scores.reads(b, query, key) || scores.isOfBlind(b, query, key)))
        return true;
      if ((output != "d_v" || reachesProbabilities) && scores.sees(b, query, key)) return true;
    }
    return false;
  };
  return {.inputs = {input}, .axis = isOfKeys ? 'k' : 'j', .isHeld = isHeld, .mayReach = mayReach};
}

struct PoisonedAttention {
  Kernel kernel;
  std::vector<double> lengths;  ///< of the input of that name
  Poison poison;
};

/// Forward or backward, of every mask, behind odd counts and within tiles that masks leave in part.
template <typename MakePoison>
std::vector<PoisonedAttention> poisonedAttentions(const samples::AttentionExtents &e,
                                                  const std::vector<Kernel> &masked,
                                                  const MakePoison &makePoison,
                                                  const std::vector<std::string> &ofQueries) {
  const std::vector<double> lengths = {121, 0};
  const int64_t shift = e.k - e.j;
  const SeenScores padded(
      e.b, e.j, e.k, [&](int64_t b, int64_t, int64_t k) { return k < lengths[size_t(b)]; }, true),
      causal(e.b, e.j, e.k, [&](int64_t, int64_t j, int64_t k) { return k <= j + shift; }),
      window(e.b, e.j, e.k, [&](int64_t, int64_t j, int64_t k) {
        return k >= j + shift - windowLeft && k <= j + shift + windowRight;
      });
  std::vector<PoisonedAttention> found;
  const auto between = [](int64_t first, int64_t end) {
    return [=](int64_t, int64_t position) { return position >= first && position < end; };
  };
  for (const std::string input : {"keys", "v"}) {
    found.push_back({masked[0], lengths, makePoison(input, padded, [=](int64_t b, int64_t key) {
                       return key >= lengths[size_t(b)];
                     })});
    found.push_back({masked[1], {}, makePoison(input, causal, between(150, 152))});
    // Some of these no query sees.
    found.push_back({masked[2], {}, makePoison(input, window, between(90, 106))});
  }
  for (const std::string &input : ofQueries) {
    found.push_back({masked[1], {}, makePoison(input, causal, between(70, 72))});
    found.push_back({masked[2], {}, makePoison(input, window, between(10, 12))});
  }
  return found;
}

inline std::vector<PoisonedAttention> poisonedForwards(const samples::AttentionExtents &e,
                                                       DType type) {
  return poisonedAttentions(
      e,
      {samples::paddedAttention(e, type, true), samples::causalAttention(e, type, true),
       samples::windowAttention(e, type, windowLeft, windowRight)},
      forwardPoison, {"q"});
}

inline std::vector<PoisonedAttention> poisonedBackwards(const samples::AttentionExtents &e,
                                                        DType type) {
  return poisonedAttentions(e,
                            {samples::paddedBackward(e, type),
                             samples::biasedBackward(e, type, true),  // under a causal mask
                             samples::windowBackward(e, type, windowLeft, windowRight)},
                            backwardPoison, {"q", "d_output", "log_sums", "row_sums"});
}

}  // namespace weft::emulate
