// Contractions that end with a local softmax, as attention decomposed into sub-vectors has them:
// for tests of families that take such epilogues.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

/// b, h: batch elements; j queries, k keys of p elements; sub-vectors of `length` keys.
struct ScoreExtents {
  int64_t b = 2, h = 3, j = 72, k = 200, p = 64, length = 64;
};

class Scores {
public:
  Scores(std::string name, const ScoreExtents &e, DType type, bool startsWithKeys = true)
      : builder(std::move(name), {{'b', e.b},
                                  {'h', e.h},
                                  {'j', e.j},
                                  {'k', e.k},
                                  {'n', (e.k + e.length - 1) / e.length},
                                  {'p', e.p}}),
        shift(e.k - e.j),
        type(type),
        length(e.length),
        startsWithKeys(startsWithKeys) {
    for (const bool areKeys : {startsWithKeys, !startsWithKeys})
      operands.push_back(input(areKeys ? "keys" : "q", areKeys ? "phbk" : "phbj"));
  }

  ValueId input(const std::string &name, const std::string &letters) {
    return builder.input(name, letters, type);
  }
  /// Of the keys of every batch element.
  int lengths() { return builder.input("lengths", "b", DType::i32); }
  int gemm(double scale) {
    const ValueId value =
        builder.op("contract", OperatorClass::contraction, operands, "score", "hbjk", "p", type);
    builder.last().attributes = {
        {"spec", std::string(startsWithKeys ? "phbk,phbj->hbjk" : "phbj,phbk->hbjk")}};
    if (scale != 1) builder.last().attributes["scale"] = scale;
    return value;
  }
  int map(const std::string &name, const std::string &spelling, std::vector<ValueId> operands,
          const std::string &result) {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, std::move(operands), result, "hbjk", "", type);
    if (!spelling.empty()) builder.last().expression = Expression::parse(spelling);
    return value;
  }
  /// Queries are aligned to the end of the keys.
  int causal(int of) {
    return mask({of}, {.key = 3, .query = 2, .shift = shift}, "causal", {{"query", int64_t(2)}});
  }
  int window(int of, int64_t left, int64_t right) {
    return mask({of},
                {.kind = MaskShape::Kind::window,
                 .key = 3,
                 .query = 2,
                 .shift = shift,
                 .left = left,
                 .right = right},
                "window", {{"query", int64_t(2)}, {"left", left}, {"right", right}});
  }
  int padding(int of, int lengths) {
    return mask({of, lengths}, {.kind = MaskShape::Kind::padding, .key = 3}, "padding",
                {{"along", std::vector<int64_t>{1}}});
  }
  /// By a block mask.
  int blocks(int of, const std::string &pattern) {
    return mask({of}, {.kind = MaskShape::Kind::pattern, .key = 3, .query = 2}, "pattern",
                {{"query", int64_t(2)}, {"pattern", pattern}});
  }
  Kernel whole(int of) { return builder.build({of}); }
  /// What is stored of exponentials.
  enum class Stored : uint8_t { all, allAndKept, kept };
  /// Over k; kept ones are those of a dropout.
  Kernel build(int of, Stored stored = Stored::all) {
    const int exponentials = builder.op("local_softmax", OperatorClass::normalization, {of},
                                        "exponentials", "hbjk", "k", type);
    builder.last().attributes = {{"axis", int64_t(3)}, {"tile", length}};
    const int maxima = builder.also("maxima", "hbjn", DType::f32),
              sums = builder.also("sums", "hbjn", DType::f32);
    if (stored == Stored::all) return builder.build({exponentials, maxima, sums});
    const int kept =
        builder.op("dropout", OperatorClass::elementwise, {exponentials}, "kept", "hbjk", "", type);
    builder.last().attributes = {{"p", 0.25}, {"stream", int64_t(3)}};
    if (stored == Stored::kept) return builder.build({kept, maxima, sums});
    return builder.build({exponentials, maxima, sums, kept});
  }

private:
  int mask(std::vector<ValueId> operands, const MaskShape &shape, const std::string &kind,
           std::map<std::string, Attribute> attributes) {
    const ValueId value = map("mask", "", std::move(operands), kind);
    attributes["kind"] = kind;
    attributes["key"] = int64_t(shape.key);
    builder.last().attributes = std::move(attributes);
    builder.compute(maskExpression(shape));
    return value;
  }

  KernelBuilder builder;
  int64_t shift;
  DType type;
  int64_t length;
  bool startsWithKeys;
  std::vector<ValueId> operands;
};

inline Kernel scoresLocalSoftmax(const ScoreExtents &e, DType type, bool startsWithKeys = true) {
  Scores scores(startsWithKeys ? "scores_local_softmax" : "scores_of_queries_local_softmax", e,
                type, startsWithKeys);
  return scores.build(scores.gemm(0.125));
}
/// Nothing between the GEMM and its exponentials.
inline Kernel plainLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("plain_local_softmax", e, type, false);
  return scores.build(scores.gemm(1));
}
/// Whether a key counts where "mask" is added, which is 0 there and else -inf: of every second run
/// of 64 none does, and of the others not every third run of 16.
inline bool isSeen(int64_t key) { return key / 64 % 2 == 0 && key / 16 % 3 != 1; }
/// "mask" is added, one row a batch element.
inline Kernel maskedLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("masked_local_softmax", e, type);
  const int mask = scores.input("mask", "bk"), score = scores.gemm(0.25);
  return scores.build(scores.map("add", "{0} + {1}", {score, mask}, "masked"));
}
/// With a tensor of the result's shape, which comes in panels, and one element a column.
inline Kernel biasedLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("biased_local_softmax", e, type);
  const int bias = scores.input("bias", "hbjk"), column = scores.input("column", "k"),
            score = scores.gemm(0.5);
  return scores.build(scores.map("add", "{0} + {1}",
                                 {scores.map("add", "{0} + {1}", {score, bias}, "biased"), column},
                                 "moved"));
}

/// As attention of decoders has it: keys that follow the query do not count.
inline Kernel causalLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("causal_local_softmax", e, type);
  return scores.build(scores.causal(scores.gemm(0.125)));
}
/// Keys near the query alone, and no padding: rows of which no key counts among them.
inline Kernel windowLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("window_local_softmax", e, type, false);
  const int lengths = scores.lengths(), score = scores.gemm(0.25);
  return scores.build(scores.padding(scores.window(score, 37, 5), lengths));
}

/// As a trained attention has it: the second GEMM reads what is kept, the backward pass all.
inline Kernel droppedLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("dropped_local_softmax", e, type);
  return scores.build(scores.causal(scores.gemm(0.125)), Scores::Stored::allAndKept);
}
/// Without a backward pass.
inline Kernel keptLocalSoftmax(const ScoreExtents &e, DType type) {
  Scores scores("kept_local_softmax", e, type);
  return scores.build(scores.causal(scores.gemm(0.125)), Scores::Stored::kept);
}

/// Under a block mask, scores alone or exponentials.
inline Kernel scoresInBlocks(const ScoreExtents &e, DType type, const std::string &pattern,
                             bool hasSoftmax) {
  Scores scores("scores_in_blocks", e, type, false);
  const int seen = scores.blocks(scores.gemm(0.125), pattern);
  return hasSoftmax ? scores.build(seen) : scores.whole(seen);
}

inline std::vector<Kernel> localSoftmaxes(const ScoreExtents &extents, DType type) {
  return {scoresLocalSoftmax(extents, type), scoresLocalSoftmax(extents, type, false),
          plainLocalSoftmax(extents, type),  maskedLocalSoftmax(extents, type),
          biasedLocalSoftmax(extents, type), causalLocalSoftmax(extents, type),
          windowLocalSoftmax(extents, type), droppedLocalSoftmax(extents, type),
          keptLocalSoftmax(extents, type)};
}

}  // namespace weft::samples
