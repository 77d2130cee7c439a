// Fused attentions as transformer layers have them: for tests of families that take such kernels.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "kernel/TileBounds.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleRotary.h"

namespace weft::samples {

/// b, h: batch and heads of keys; g: query heads of a group; j queries, k keys of p elements;
/// values of w; distances of keys and queries up to `distance`, 0: no axis of them. `tokens`: of
/// all sequences, where all tensors are packed; none: they are not. `page`: positions of a page
/// that keys and values lie in, of `pages` in memory; 0: they lie in one piece.
struct AttentionExtents {
  int64_t b = 1, h = 2, g = 1, j = 64, k = 64, p = 64, w = 64;
  int64_t distance = 0, tokens = 0, page = 0, pages = 0;
  bool lacksLast = false;  ///< the last distance has no element in tables
  bool hasBounds = false;  ///< a document mask has bounds of its segments
};

/// q over b h g j p, keys over b h k p, values over b h k w; score ops are added in order.
class FusedAttention {
public:
  FusedAttention(std::string name, const AttentionExtents &e, DType type, double scale = 0.125)
      : builder(std::move(name), axesOf(e)), extents(e), type(type), scale(scale) {
    const auto tensor = [&](const char *name, const char *letters) {
      return builder.input(name, letters, type);
    };
    if (e.page > 0) {
      q = tensor("q", "bhgjp"), keys = tensor("keys", "lhmp"), v = tensor("v", "nhow");
      table = builder.input("table", "bq", DType::i32);
      return;
    }
    if (e.tokens == 0) {
      q = tensor("q", "bhgjp"), keys = tensor("keys", "bhkp"), v = tensor("v", "bhkw");
      return;
    }
    q = tensor("q", "shgp"), keys = tensor("keys", "thp"), v = tensor("v", "uhw");
    offsets = builder.input("offsets", "o", DType::i32);
  }
  /// Before any op.
  ValueId input(const std::string &name, const std::string &letters, DType own) {
    return builder.input(name, letters, own);
  }
  /// Queries are turned by their positions, before scores(). starts: of sequences, over b; of
  /// packed tokens, over s; or none.
  void rotateQueries(const RotaryForm &form, ValueId starts = -1) {
    const bool isPacked = extents.tokens > 0;
    std::vector<ValueId> operands = {q};
    if (starts >= 0) operands.push_back(starts);
    q = builder.op("rotary", OperatorClass::elementwise, operands, "q_turned",
                   isPacked ? "shgp" : "bhgjp", "", type);
    describeRotary(builder, form, extents.p, isPacked ? 0 : int(queryAxis), isPacked ? 4 : 5, type,
                   isPacked);
  }
  int scores() {
    if (extents.tokens > 0) {
      q = unpacked(q, "q_padded", "bhgjp", 3);
      keys = unpacked(keys, "keys_padded", "bhkp", 2);
      v = unpacked(v, "v_padded", "bhkw", 2);
    }
    if (extents.page > 0) {
      keys = gathered(keys, "keys_gathered", "bhkp");
      v = gathered(v, "v_gathered", "bhkw");
    }
    const int value =
        builder.op("contract", OperatorClass::contraction, {q, keys}, "scores", "bhgjk", "p", type);
    builder.last().attributes = {{"spec", std::string("bhgjp,bhkp->bhgjk")}, {"scale", scale}};
    return value;
  }
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
  /// Keys up to the query's, which is aligned to the end of the keys.
  int causal(int of) {
    const MaskShape shape{.kind = MaskShape::Kind::causal, .shift = extents.k - extents.j};
    return mask(shape, {of}, "causal", {{"kind", std::string("causal")}, {"query", queryAxis}});
  }
  /// Keys up to the query's, which stands from the start of its batch element on: i32.
  int causalFrom(int of, int starts) {
    return mask({.kind = MaskShape::Kind::causal, .hasStarts = true}, {of, starts}, "causal",
                {{"kind", std::string("causal")},
                 {"query", queryAxis},
                 {"along", std::vector<int64_t>{0}}});
  }
  int window(int of, int64_t left, int64_t right, int64_t global = 0) {
    const MaskShape shape{.kind = MaskShape::Kind::window,
                          .shift = extents.k - extents.j,
                          .left = left,
                          .right = right,
                          .global = global};
    std::map<std::string, Attribute> attributes = {
        {"kind", std::string("window")}, {"query", queryAxis}, {"left", left}, {"right", right}};
    if (global > 0) attributes["global"] = global;
    return mask(shape, {of}, "near", std::move(attributes));
  }
  /// lengths: i32, over these dimensions of scores: those of batch elements.
  int padding(int of, int lengths, std::vector<int64_t> along = {0}) {
    return mask({.kind = MaskShape::Kind::padding}, {of, lengths}, "padded",
                {{"kind", std::string("padding")}, {"along", std::move(along)}});
  }
  /// The same of queries, as packed layers have it.
  int paddingOfQueries(int of, int lengths) {
    const int value =
        map("mask", maskExpression({.kind = MaskShape::Kind::padding, .key = int(queryAxis)}),
            {of, lengths}, "padded_queries");
    builder.last().attributes = {
        {"kind", std::string("padding")}, {"key", queryAxis}, {"along", std::vector<int64_t>{0}}};
    return value;
  }
  /// Tiles of a pattern, with a table for each head where it says so.
  int blocks(int of, const std::string &pattern, bool isByHead) {
    MaskShape shape{.kind = MaskShape::Kind::pattern};
    std::map<std::string, Attribute> attributes = {
        {"kind", std::string("pattern")}, {"query", queryAxis}, {"pattern", pattern}};
    if (isByHead) {
      shape.heads = headAxes, shape.headExtents = {extents.h, extents.g};
      attributes["along"] = std::vector<int64_t>{1, 2};
    }
    return mask(std::move(shape), {of}, "in_blocks", std::move(attributes));
  }
  Kernel build(int of, bool withLogSums = false, std::optional<Dropout> dropout = std::nullopt) {
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction, {of, v},
                                  "output", "bhgjw", "k", type);
    builder.last().attributes = {{"spec", std::string("bhgjk,bhkw->bhgjw")}};
    if (dropout) {
      builder.last().attributes["p"] = dropout->p;
      builder.last().attributes["stream"] = dropout->stream;
    }
    std::vector<ValueId> results = {output};
    if (withLogSums) results.push_back(builder.also("log_sums", "bhgj", DType::f32));
    if (extents.tokens == 0) return builder.build(results);
    const auto pack = [&](ValueId value, const char *name, const char *letters, DType own) {
      const int packed =
          builder.op("pack", OperatorClass::movement, {value, offsets}, name, letters, "", own);
      builder.last().attributes = {{"axes", std::vector<int64_t>{0, queryAxis}}};
      return packed;
    };
    std::vector<ValueId> stored = {pack(results[0], "output_packed", "yhgw", type)};
    if (withLogSums) stored.push_back(pack(results[1], "log_sums_packed", "yhg", DType::f32));
    return builder.build(stored);
  }
  int alibi(int of) {
    const int value = map("alibi",
                          alibiExpression({.heads = headAxes,
                                           .extents = {extents.h, extents.g},
                                           .query = int(queryAxis),
                                           .key = int(keyAxis),
                                           .shift = extents.k - extents.j}),
                          {of}, "sloped");
    builder.last().attributes = {{"heads", std::vector<int64_t>{1, 2}},
                                 {"query", queryAxis},
                                 {"key", keyAxis},
                                 {"steepness", 8.0}};
    return value;
  }
  /// table: over h g z, z the distances.
  int relative(int of, int table) { return relative(of, table, headAxes, {1, 2}, "biased", false); }
  /// tables: over b h g j z and b h k z; distances are those of queries from keys.
  int disentangled(int of, int ofQueries, int ofKeys) {
    const int first =
        relative(of, ofQueries, {0, 2, 1, int(queryAxis)}, {0, 1, 2, 3}, "to_positions", true);
    return relative(first, ofKeys, {0, 2, int(keyAxis)}, {0, 1, 4}, "of_positions", true);
  }
  /// segments: i32, over b k; read at positions of keys and of queries. bounds: over b r x, tiles
  /// of these, and two; or none.
  int document(int of, int segments, int bounds = -1) {
    std::vector<ValueId> operands = {of, segments};
    if (bounds >= 0) operands.push_back(bounds);
    return mask({.kind = MaskShape::Kind::document, .shift = extents.k - extents.j},
                std::move(operands), "in_document",
                {{"kind", std::string("document")},
                 {"query", queryAxis},
                 {"along", std::vector<int64_t>{0}}});
  }
  /// Axes of the kernel, and dimensions of scores.
  static constexpr int64_t queryAxis = 3, keyAxis = 4;

private:
  /// The table runs along axes of the kernel, and dimensions of scores; then along distances.
  int relative(int of, int table, std::vector<int> axes, std::vector<int64_t> along,
               const std::string &result, bool isReverse) {
    const int value =
        map("relative_bias",
            relativeBiasExpression({.along = std::move(axes),
                                    .query = int(queryAxis),
                                    .key = int(keyAxis),
                                    .shift = extents.k - extents.j,
                                    .distance = extents.distance,
                                    .distances = 2 * extents.distance + (extents.lacksLast ? 0 : 1),
                                    .isReverse = isReverse}),
            {of, table}, result);
    builder.last().attributes = {{"along", std::move(along)},
                                 {"query", queryAxis},
                                 {"key", keyAxis},
                                 {"distance", extents.distance}};
    if (isReverse) builder.last().attributes["direction"] = std::string("reverse");
    return value;
  }
  int unpacked(int packed, const std::string &name, const std::string &letters, int64_t positions) {
    const int value =
        builder.op("unpack", OperatorClass::movement, {packed, offsets}, name, letters, "", type);
    builder.last().attributes = {{"axis", int64_t(0)},
                                 {"into", std::vector<int64_t>{0, positions}}};
    return value;
  }

  int gathered(int pages, const std::string &name, const std::string &letters) {
    const int value = builder.op("gather_pages", OperatorClass::movement, {pages, table}, name,
                                 letters, "", type);
    builder.last().attributes = {{"axis", int64_t(2)}, {"along", std::vector<int64_t>{0}}};
    return value;
  }

  const std::vector<int> headAxes = {2, 1};  ///< of the kernel: h, g, which are dimensions 1, 2
  static std::map<char, int64_t> axesOf(const AttentionExtents &e) {
    std::map<char, int64_t> axes = {{'b', e.b}, {'g', e.g}, {'h', e.h}, {'j', e.j},
                                    {'k', e.k}, {'p', e.p}, {'w', e.w}};
    if (e.distance > 0) axes['z'] = 2 * e.distance + (e.lacksLast ? 0 : 1);
    if (e.hasBounds) axes['r'] = boundedTiles(e.k), axes['x'] = boundsOfTile;
    if (e.page > 0) {
      axes['q'] = e.k / e.page;
      axes['l'] = axes['n'] = e.pages;
      axes['m'] = axes['o'] = e.page;
    }
    if (e.tokens > 0) {
      axes['o'] = e.b + 1;
      for (const char letter : {'s', 't', 'u', 'y'}) axes[letter] = e.tokens;
    }
    return axes;
  }
  int mask(MaskShape shape, std::vector<ValueId> operands, const std::string &result,
           std::map<std::string, Attribute> attributes) {
    shape.query = int(queryAxis), shape.key = int(keyAxis);
    const ValueId value = map("mask", maskExpression(shape), std::move(operands), result);
    attributes["key"] = keyAxis;
    builder.last().attributes = std::move(attributes);
    return value;
  }

  KernelBuilder builder;
  AttentionExtents extents;
  DType type;
  double scale;
  int q = -1, keys = -1, v = -1, offsets = -1, table = -1;
};

inline Kernel plainAttention(const AttentionExtents &e, DType type, bool withLogSums = false) {
  FusedAttention attention("attention", e, type);
  return attention.build(attention.scores(), withLogSums);
}
inline Kernel causalAttention(const AttentionExtents &e, DType type, bool withLogSums = false) {
  FusedAttention attention("causal_attention", e, type);
  return attention.build(attention.causal(attention.scores()), withLogSums);
}
inline Kernel windowAttention(const AttentionExtents &e, DType type, int64_t left, int64_t right,
                              int64_t global = 0) {
  FusedAttention attention("window_attention", e, type);
  return attention.build(attention.window(attention.scores(), left, right, global));
}
/// Probabilities are dropped.
inline Kernel droppedAttention(const AttentionExtents &e, DType type, const Dropout &dropout,
                               bool isCausal = false, bool withLogSums = false) {
  FusedAttention attention("dropped_attention", e, type);
  const int scores = attention.scores();
  return attention.build(isCausal ? attention.causal(scores) : scores, withLogSums, dropout);
}
/// "lengths": keys of each batch element.
inline Kernel paddedAttention(const AttentionExtents &e, DType type, bool isCausal = false) {
  FusedAttention attention("padded_attention", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32);
  const int padded = attention.padding(attention.scores(), lengths);
  return attention.build(isCausal ? attention.causal(padded) : padded);
}
/// "lengths": keys of each batch element in front of its queries.
inline Kernel cachedAttention(const AttentionExtents &e, DType type) {
  FusedAttention attention("cached_attention", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32);
  return attention.build(attention.causalFrom(attention.scores(), lengths));
}
/// Queries are turned; with a causal mask, if asked for.
inline Kernel rotatedAttention(const AttentionExtents &e, DType type, const RotaryForm &form,
                               bool isCausal = false, bool withLogSums = false) {
  FusedAttention attention("rotated_attention", e, type);
  attention.rotateQueries(form);
  const int scores = attention.scores();
  return attention.build(isCausal ? attention.causal(scores) : scores, withLogSums);
}
/// "lengths": keys of each batch element in front of its queries, which are turned by where they
/// stand behind them.
inline Kernel rotatedCachedAttention(const AttentionExtents &e, DType type, RotaryForm form) {
  FusedAttention attention("rotated_cached_attention", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32);
  form.hasStarts = true;
  attention.rotateQueries(form, lengths);
  return attention.build(attention.causalFrom(attention.scores(), lengths));
}
/// Packed tokens, turned by their distance from "token_starts", where their sequences start.
inline Kernel rotatedPackedAttention(const AttentionExtents &e, DType type, const RotaryForm &form,
                                     bool isCausal) {
  FusedAttention attention("rotated_packed_attention", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32);
  attention.rotateQueries(form, attention.input("token_starts", "s", DType::i32));
  const int padded = attention.padding(attention.scores(), lengths);
  return attention.build(isCausal ? attention.causal(padded) : padded);
}
/// "lengths": keys and queries of each batch element.
inline Kernel attentionOfTokens(const AttentionExtents &e, DType type, bool withLogSums = false) {
  FusedAttention attention("attention_of_tokens", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32);
  return attention.build(
      attention.paddingOfQueries(attention.padding(attention.scores(), lengths), lengths),
      withLogSums);
}
/// The same of packed tokens, without masks of queries: "offsets" of sequences, whose keys from
/// "lengths" on are hidden, if asked for.
inline Kernel packedAttention(const AttentionExtents &e, DType type, bool isPadded,
                              bool isCausal = false,
                              const std::optional<Dropout> &dropout = std::nullopt,
                              bool withLogSums = false) {
  FusedAttention attention("packed_attention", e, type);
  const int lengths = isPadded ? attention.input("lengths", "b", DType::i32) : ValueId(),
            scores = attention.scores(),
            padded = isPadded ? attention.padding(scores, lengths) : scores;
  return attention.build(isCausal ? attention.causal(padded) : padded, withLogSums, dropout);
}
/// The same whose masks say that their lengths are those that were packed, as pack-sequences writes
/// them; rows of the output behind the last token are zero, or unread.
inline Kernel endedAttention(const AttentionExtents &e, DType type, bool isUnread,
                             bool isCausal = false,
                             const std::optional<Dropout> &dropout = std::nullopt,
                             bool withLogSums = false) {
  FusedAttention attention("ended_attention", e, type);
  const int lengths = attention.input("lengths", "b", DType::i32),
            padded =
                attention.paddingOfQueries(attention.padding(attention.scores(), lengths), lengths);
  Kernel kernel =
      attention.build(isCausal ? attention.causal(padded) : padded, withLogSums, dropout);
  for (BodyOp &op : kernel.body) {
    if (op.kind == OpKind::mask && op.operands.size() > 1) op.attributes["packed"] = int64_t(1);
    if (isUnread && op.kind == OpKind::pack) op.attributes["unread"] = int64_t(1);
  }
  return kernel;
}
/// A block mask by a pattern (kernel/BlockMask.h), with a table for each head where it says so.
inline Kernel blockAttention(const AttentionExtents &e, DType type, const std::string &pattern,
                             bool isByHead = false, bool isCausal = false,
                             bool withLogSums = false) {
  FusedAttention attention("block_attention", e, type);
  const int seen = attention.blocks(attention.scores(), pattern, isByHead);
  return attention.build(isCausal ? attention.causal(seen) : seen, withLogSums);
}
/// A bias for every score of a head, then a causal mask.
inline Kernel biasedAttention(const AttentionExtents &e, DType type) {
  FusedAttention attention("biased_attention", e, type);
  const int bias = attention.input("bias", "hgjk", type);
  const int biased = attention.map("add", "{0} + {1}", {attention.scores(), bias}, "biased");
  return attention.build(attention.causal(biased));
}
/// c tanh(score / c), as Gemma 2 caps scores, in a window.
inline Kernel cappedAttention(const AttentionExtents &e, DType type, bool withLogSums = false) {
  FusedAttention attention("capped_attention", e, type);
  const int small = attention.scaled(attention.scores(), 0.125, "small"),
            soft = attention.map("tanh", "weft::tanh({0})", {small}, "soft"),
            capped = attention.scaled(soft, 8, "capped");
  return attention.build(attention.window(capped, 40, 3), withLogSums);
}
/// ALiBi: a slope a head times the distance of key and query.
inline Kernel slopedAttention(const AttentionExtents &e, DType type) {
  FusedAttention attention("sloped_attention", e, type);
  const int slopes = attention.input("slopes", "hg", DType::f32);
  const int sloped =
      attention.map("add", "{0} + {1} * ([4] - [3])", {attention.scores(), slopes}, "sloped");
  return attention.build(attention.causal(sloped));
}
/// ALiBi with slopes from the number of the head, as weft.alibi has them.
inline Kernel alibiAttention(const AttentionExtents &e, DType type, bool isCausal = true) {
  FusedAttention attention("alibi_attention", e, type);
  const int sloped = attention.alibi(attention.scores());
  return attention.build(isCausal ? attention.causal(sloped) : sloped);
}
/// T5: an element of a table by head and distance. e.distance is given.
inline Kernel relativeAttention(const AttentionExtents &e, DType type, bool isCausal = false) {
  FusedAttention attention("relative_attention", e, type, 1);
  const int table = attention.input("table", "hgz", type);
  const int biased = attention.relative(attention.scores(), table);
  return attention.build(isCausal ? attention.causal(biased) : biased);
}
/// DeBERTa: products of queries, and of keys, with vectors of distances. e.distance is given, and
/// the last one has none.
inline Kernel disentangledAttention(const AttentionExtents &extents, DType type,
                                    bool isPadded = false) {
  AttentionExtents e = extents;
  e.lacksLast = true;
  FusedAttention attention("disentangled_attention", e, type);
  const int ofQueries = attention.input("of_queries", "bhgjz", type),
            ofKeys = attention.input("of_keys", "bhkz", type),
            lengths = isPadded ? attention.input("lengths", "b", DType::i32) : ValueId();
  const int scores = attention.disentangled(attention.scores(), ofQueries, ofKeys);
  return attention.build(isPadded ? attention.padding(scores, lengths) : scores);
}
/// "segments": the document of each position; keys of others are hidden.
inline Kernel documentAttention(const AttentionExtents &e, DType type, bool isCausal = false) {
  FusedAttention attention("document_attention", e, type);
  const int segments = attention.input("segments", "bk", DType::i32),
            bounds = e.hasBounds ? attention.input("bounds", "brx", DType::i32) : ValueId();
  const int seen = attention.document(attention.scores(), segments, bounds);
  return attention.build(isCausal ? attention.causal(seen) : seen);
}

}  // namespace weft::samples
