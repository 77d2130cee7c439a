// Backward passes of fused attentions as transformer layers have them: for tests of the recognition
// and of families that take such kernels.
#pragma once

#include "tests/unit/samples/SampleAttentions.h"

#include <functional>

namespace weft::samples {

/// What the body of a backward pass is made of, op by op. Inputs: q and d_output of queries, keys
/// and v of keys, f32 log_sums and row_sums of rows. Letters as in AttentionExtents.
class FusedAttentionBackward {
public:
  FusedAttentionBackward(std::string name, const AttentionExtents &e, DType type,
                         double scale = 0.125)
      : builder(std::move(name), axesOf(e)), extents(e), type(type), scale(scale) {
    if (e.tokens > 0) {
      q = builder.input("q", "shgp", type), keys = builder.input("keys", "thp", type);
      v = builder.input("v", "uhw", type), dOutput = builder.input("d_output", "yhgw", type);
      logSums = builder.input("log_sums", "lhg", DType::f32);
      rowSums = builder.input("row_sums", "mhg", DType::f32);
      offsets = builder.input("offsets", "o", DType::i32);
      return;
    }
    q = builder.input("q", "bhgjp", type), keys = builder.input("keys", "bhkp", type);
    v = builder.input("v", "bhkw", type), dOutput = builder.input("d_output", "bhgjw", type);
    logSums = builder.input("log_sums", "bhgj", DType::f32);
    rowSums = builder.input("row_sums", "bhgj", DType::f32);
  }
  /// Before any op.
  ValueId input(const std::string &name, const std::string &letters, DType own) {
    return builder.input(name, letters, own);
  }
  int contract(int a, const std::string &ofA, int b, const std::string &ofB,
               const std::string &result, const std::string &letters, double factor = 1) {
    std::string reduced;
    for (const char letter : ofA)
      if (letters.find(letter) == std::string::npos) reduced += letter;
    const int value =
        builder.op("contract", OperatorClass::contraction, {a, b}, result, letters, reduced, type);
    builder.last().attributes = {{"spec", ofA + "," + ofB + "->" + letters}};
    if (factor != 1) builder.last().attributes["scale"] = factor;
    return value;
  }
  int scores() {
    if (extents.tokens > 0) {
      q = unpacked(q, "q_padded", "bhgjp", 3, type);
      keys = unpacked(keys, "keys_padded", "bhkp", 2, type);
      v = unpacked(v, "v_padded", "bhkw", 2, type);
      dOutput = unpacked(dOutput, "d_output_padded", "bhgjw", 3, type);
      logSums = unpacked(logSums, "log_sums_padded", "bhgj", 3, DType::f32);
      rowSums = unpacked(rowSums, "row_sums_padded", "bhgj", 3, DType::f32);
    }
    return contract(q, "bhgjp", keys, "bhkp", "scores", "bhgjk", scale);
  }
  int dKept() { return contract(dOutput, "bhgjw", v, "bhkw", "d_kept", "bhgjk"); }
  int map(const std::string &name, const Expression &expression, std::vector<ValueId> operands,
          const std::string &result) {
    const ValueId value = builder.op(name, OperatorClass::elementwise, std::move(operands), result,
                                     "bhgjk", "", type);
    builder.last().expression = expression;
    return value;
  }
  int map(const std::string &name, const std::string &spelling, std::vector<ValueId> operands,
          const std::string &result) {
    return map(name, Expression::parse(spelling), std::move(operands), result);
  }
  int scaled(int of, double factor, const std::string &result) {
    const int value = map("scale", "{0} * {factor}", {of}, result);
    builder.last().attributes = {{"factor", factor}};
    return value;
  }
  /// A mask along queries and keys, and the same one with zeros for gradients.
  int masked(MaskShape shape, std::vector<ValueId> operands, const std::string &result,
             std::optional<double> fill = std::nullopt, const std::string &pattern = "") {
    shape.query = FusedAttention::queryAxis, shape.key = FusedAttention::keyAxis;
    if (shape.kind == MaskShape::Kind::causal || shape.kind == MaskShape::Kind::window ||
        shape.kind == MaskShape::Kind::document)
      shape.shift = extents.k - extents.j;
    shape.fill = fill.value_or(shape.fill);
    const ValueId value = map("mask", maskExpression(shape), std::move(operands), result);
    std::map<std::string, Attribute> attributes = {{"kind", std::string(nameOf(shape.kind))},
                                                   {"key", FusedAttention::keyAxis}};
    if (shape.kind == MaskShape::Kind::padding || shape.kind == MaskShape::Kind::document)
      attributes["along"] = std::vector<int64_t>{0};
    if (shape.kind != MaskShape::Kind::padding) attributes["query"] = FusedAttention::queryAxis;
    if (shape.kind == MaskShape::Kind::window)
      attributes["left"] = shape.left, attributes["right"] = shape.right;
    if (!pattern.empty()) attributes["pattern"] = pattern;
    if (!shape.heads.empty()) attributes["along"] = std::vector<int64_t>{1, 2};
    if (fill) attributes["fill"] = *fill;
    builder.last().attributes = std::move(attributes);
    return value;
  }
  /// As FusedAttention has them. Their derivatives by the score are 1.
  int alibi(int of) {
    const int value = map("alibi",
                          alibiExpression({.heads = {2, 1},
                                           .extents = {extents.h, extents.g},
                                           .query = int(FusedAttention::queryAxis),
                                           .key = int(FusedAttention::keyAxis),
                                           .shift = extents.k - extents.j}),
                          {of}, "sloped");
    builder.last().attributes = {{"heads", std::vector<int64_t>{1, 2}},
                                 {"query", FusedAttention::queryAxis},
                                 {"key", FusedAttention::keyAxis},
                                 {"steepness", 8.0}};
    return value;
  }
  int relative(int of, int table) {
    const int value = map("relative_bias",
                          relativeBiasExpression({.along = {2, 1},
                                                  .query = int(FusedAttention::queryAxis),
                                                  .key = int(FusedAttention::keyAxis),
                                                  .shift = extents.k - extents.j,
                                                  .distance = extents.distance,
                                                  .distances = 2 * extents.distance + 1}),
                          {of, table}, "biased");
    builder.last().attributes = {{"along", std::vector<int64_t>{1, 2}},
                                 {"query", FusedAttention::queryAxis},
                                 {"key", FusedAttention::keyAxis},
                                 {"distance", extents.distance}};
    return value;
  }
  int probability(int of) {
    return map("softmax_from_log_sums",
               "{1} == weft::negativeInfinity ? 0.0f : weft::exp({0} - {1})", {of, logSums}, "y");
  }
  int dropped(int of, const Dropout &dropout, const std::string &result) {
    const int value =
        builder.op("dropout", OperatorClass::elementwise, {of}, result, "bhgjk", "", type);
    builder.last().attributes = {{"p", dropout.p}, {"stream", dropout.stream}};
    return value;
  }
  /// (dY - row sums) y.
  int dSoftmax(int dY, int y) {
    const int centred = map("sub", "{0} - {1}", {dY, rowSums}, "centred");
    return map("mul", "{0} * {1}", {centred, y}, "d_s");
  }
  int dV(int kept) {
    return packed(contract(kept, "bhgjk", dOutput, "bhgjw", "d_v", "bhkw"), "d_v_packed", "nhw", 2);
  }
  int dQ(int dScores) {
    return packed(contract(dScores, "bhgjk", keys, "bhkp", "d_q", "bhgjp", scale), "d_q_packed",
                  "qhgp", 3);
  }
  int dK(int dScores) {
    return packed(contract(dScores, "bhgjk", q, "bhgjp", "d_k", "bhkp", scale), "d_k_packed", "zhp",
                  2);
  }

  /// The whole body: score ops, then their derivatives, which get the gradient of what the first
  /// gave. storesScores: the gradient of the dot products is an output, too; or *beside.
  Kernel build(const std::function<int(int scores)> &scoreOps,
               const std::function<int(int dScored)> &derivatives,
               const std::optional<Dropout> &dropout = std::nullopt, bool storesScores = false,
               const int *beside = nullptr) {
    const int y = probability(scoreOps(scores()));
    const int kept = dropout ? dropped(y, *dropout, "kept") : y;
    const int ofKept = dKept();
    const int dY = dropout ? dropped(ofKept, *dropout, "d_y") : ofKept;
    const int dScores = derivatives(dSoftmax(dY, y));
    const int ofV = dV(kept), ofQ = dQ(dScores);
    const int ofK = dK(dScores);
    if (beside) return builder.build({ofQ, ofK, ofV, *beside});
    if (storesScores) return builder.build({ofQ, ofK, ofV, dScores});
    return builder.build({ofQ, ofK, ofV});
  }
  Kernel build(std::vector<ValueId> outputs) { return builder.build(std::move(outputs)); }
  BodyOp &last() { return builder.last(); }

  int q = -1, keys = -1, v = -1, dOutput = -1, logSums = -1, rowSums = -1, offsets = -1;

private:
  int unpacked(int of, const std::string &name, const std::string &letters, int64_t positions,
               DType own) {
    const int value =
        builder.op("unpack", OperatorClass::movement, {of, offsets}, name, letters, "", own);
    builder.last().attributes = {{"axis", int64_t(0)},
                                 {"into", std::vector<int64_t>{0, positions}}};
    return value;
  }
  /// Where tokens are packed; else as it is.
  int packed(int of, const std::string &name, const std::string &letters, int64_t positions) {
    if (extents.tokens == 0) return of;
    const int value =
        builder.op("pack", OperatorClass::movement, {of, offsets}, name, letters, "", type);
    builder.last().attributes = {{"axes", std::vector<int64_t>{0, positions}}};
    return value;
  }
  static std::map<char, int64_t> axesOf(const AttentionExtents &e) {
    std::map<char, int64_t> axes = {{'b', e.b}, {'g', e.g}, {'h', e.h}, {'j', e.j},
                                    {'k', e.k}, {'p', e.p}, {'w', e.w}};
    if (e.hasBounds) axes['r'] = boundedTiles(e.k), axes['x'] = boundsOfTile;
    if (e.distance > 0) axes['z'] = 2 * e.distance + 1;
    if (e.tokens > 0) {
      axes['o'] = e.b + 1;
      // Behind those of scores, whose numbers masks know.
      for (const char letter : std::string("lmnqstuyz")) axes[letter] = e.tokens;
    }
    return axes;
  }
  KernelBuilder builder;
  AttentionExtents extents;
  DType type;
  double scale;
};

inline Kernel plainBackward(const AttentionExtents &e, DType type,
                            const std::optional<Dropout> &dropout = std::nullopt) {
  FusedAttentionBackward backward("attention_backward", e, type);
  const auto same = [](ValueId value) { return value; };
  return backward.build(same, same, dropout);
}
/// Scores and their gradients under the same mask.
inline Kernel maskedBackward(const std::string &name, const AttentionExtents &e, DType type,
                             const MaskShape &shape,
                             const std::optional<Dropout> &dropout = std::nullopt) {
  FusedAttentionBackward backward(name, e, type);
  return backward.build([&](int s) { return backward.masked(shape, {s}, "masked"); },
                        [&](int d) { return backward.masked(shape, {d}, "d_scores", 0); }, dropout);
}
inline Kernel causalBackward(const AttentionExtents &e, DType type,
                             const std::optional<Dropout> &dropout = std::nullopt) {
  return maskedBackward("causal_backward", e, type, {.kind = MaskShape::Kind::causal}, dropout);
}
inline Kernel windowBackward(const AttentionExtents &e, DType type, int64_t left, int64_t right) {
  return maskedBackward("window_backward", e, type,
                        {.kind = MaskShape::Kind::window, .left = left, .right = right});
}
/// "lengths": keys of each batch element.
inline Kernel paddedBackward(const AttentionExtents &e, DType type) {
  FusedAttentionBackward backward("padded_backward", e, type);
  const int lengths = backward.input("lengths", "b", DType::i32);
  const MaskShape shape{.kind = MaskShape::Kind::padding};
  return backward.build(
      [&](int s) {
        return backward.masked(shape, {s, lengths}, "masked");
      },
      [&](int d) {
        return backward.masked(shape, {d, lengths}, "d_scores", 0);
      });
}
/// The same of packed tokens: "offsets" of sequences, whose keys from "lengths" on are hidden, if
/// asked for.
inline Kernel packedBackward(const AttentionExtents &e, DType type, bool isPadded,
                             bool isCausal = false,
                             const std::optional<Dropout> &dropout = std::nullopt) {
  FusedAttentionBackward backward("packed_backward", e, type);
  const int lengths = isPadded ? backward.input("lengths", "b", DType::i32) : ValueId();
  const MaskShape padding{.kind = MaskShape::Kind::padding},
      causal{.kind = MaskShape::Kind::causal};
  return backward.build(
      [&](int s) {
        if (isPadded) s = backward.masked(padding, {s, lengths}, "padded");
        return isCausal ? backward.masked(causal, {s}, "masked") : s;
      },
      [&](int d) {
        if (isCausal) d = backward.masked(causal, {d}, "d_padded", 0);
        return isPadded ? backward.masked(padding, {d, lengths}, "d_scores", 0) : d;
      },
      dropout);
}
/// "segments": the document of each position; "bounds": of their tiles.
inline Kernel documentBackward(const AttentionExtents &extents, DType type) {
  AttentionExtents e = extents;
  e.hasBounds = true;
  FusedAttentionBackward backward("document_backward", e, type);
  const int segments = backward.input("segments", "bk", DType::i32),
            bounds = backward.input("bounds", "brx", DType::i32);
  const MaskShape shape{.kind = MaskShape::Kind::document};
  return backward.build(
      [&](int s) {
        return backward.masked(shape, {s, segments, bounds}, "masked");
      },
      [&](int d) {
        return backward.masked(shape, {d, segments, bounds}, "d_scores", 0);
      });
}
/// A block mask by a pattern, with a table for each head where it says so, before a causal one.
inline Kernel blockBackward(const AttentionExtents &e, DType type, const std::string &pattern,
                            bool isByHead = false, bool isCausal = false) {
  FusedAttentionBackward backward("block_backward", e, type);
  MaskShape blocks{.kind = MaskShape::Kind::pattern};
  // Axes of the kernel; h, then g, are dimensions 1 and 2 of scores.
  if (isByHead) blocks.heads = {2, 1}, blocks.headExtents = {e.h, e.g};
  const MaskShape causal{.kind = MaskShape::Kind::causal};
  return backward.build(
      [&](int s) {
        const int seen = backward.masked(blocks, {s}, "in_blocks", std::nullopt, pattern);
        return isCausal ? backward.masked(causal, {seen}, "masked") : seen;
      },
      [&](int d) {
        const int own = isCausal ? backward.masked(causal, {d}, "d_blocks", 0) : d;
        return backward.masked(blocks, {own}, "d_scores", 0, pattern);
      });
}
/// A bias for every score of a head under a causal mask, which gets no gradient; or storesScores:
/// what its gradient is summed from is stored.
inline Kernel biasedBackward(const AttentionExtents &e, DType type, bool storesScores = false,
                             const std::optional<Dropout> &dropout = std::nullopt) {
  FusedAttentionBackward backward("biased_backward", e, type);
  const int bias = backward.input("bias", "hgjk", type);
  const MaskShape shape{.kind = MaskShape::Kind::causal};
  return backward.build(
      [&](int s) {
        return backward.masked(shape, {backward.map("add", "{0} + {1}", {s, bias}, "biased")},
                               "masked");
      },
      [&](int d) { return backward.masked(shape, {d}, "d_scores", 0); }, dropout, storesScores);
}
/// ALiBi under a causal mask: slopes have no gradient.
inline Kernel alibiBackward(const AttentionExtents &e, DType type) {
  FusedAttentionBackward backward("alibi_backward", e, type);
  const MaskShape shape{.kind = MaskShape::Kind::causal};
  return backward.build(
      [&](int s) { return backward.masked(shape, {backward.alibi(s)}, "masked"); },
      [&](int d) { return backward.masked(shape, {d}, "d_scores", 0); });
}
/// A table by distance that gets no gradient. e.distance is given.
inline Kernel relativeBackward(const AttentionExtents &e, DType type, bool isCausal = false) {
  FusedAttentionBackward backward("relative_backward", e, type);
  const int table = backward.input("table", "hgz", type);
  const MaskShape shape{.kind = MaskShape::Kind::causal};
  return backward.build(
      [&](int s) {
        const int biased = backward.relative(s, table);
        return isCausal ? backward.masked(shape, {biased}, "masked") : biased;
      },
      [&](int d) { return isCausal ? backward.masked(shape, {d}, "d_scores", 0) : d; });
}
/// "mask" of the keys of each batch element, f32 whatever the scores are, is added to them and gets
/// no gradient.
inline Kernel addedMaskBackward(const AttentionExtents &e, DType type) {
  FusedAttentionBackward backward("added_mask_backward", e, type);
  const int mask = backward.input("mask", "bk", DType::f32);
  return backward.build(
      [&](int s) {
        return backward.map("add", "{0} + {1}", {s, mask}, "masked");
      },
      [](int d) { return d; });
}
/// c tanh(score / c) in a window; storesBias: a bias of every score is added then, and what its
/// gradient is summed from is stored.
inline Kernel cappedBackward(const AttentionExtents &e, DType type, bool storesBias = false) {
  FusedAttentionBackward backward("capped_backward", e, type);
  const MaskShape shape{.kind = MaskShape::Kind::window, .left = 40, .right = 3};
  const int bias = storesBias ? int(backward.input("bias", "hgjk", type)) : -1;
  int soft = -1, dBiased = -1;
  return backward.build(
      [&](int s) {
        soft =
            backward.map("tanh", "weft::tanh({0})", {backward.scaled(s, 0.125, "small")}, "soft");
        int capped = backward.scaled(soft, 8, "capped");
        if (storesBias) capped = backward.map("add", "{0} + {1}", {capped, bias}, "biased");
        return backward.masked(shape, {capped}, "masked");
      },
      [&](int d) {
        dBiased = backward.masked(shape, {d}, "d_capped", 0);
        const int large = backward.scaled(dBiased, 8, "d_soft");
        return backward.scaled(
            backward.map("tanh_dx", "{0} * (1.0f - {1} * {1})", {large, soft}, "d_small"), 0.125,
            "d_scores");
      },
      std::nullopt, false, storesBias ? &dBiased : nullptr);
}

}  // namespace weft::samples
