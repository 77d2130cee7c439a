// Contractions one of whose operands is transformed on load, as transformer layers have them: for
// tests of families that take prologues.
#pragma once

#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

/// One element a row, one along k, none: what a prologue reads has each of these roles in some
/// kernel below.
struct PrologueExtents {
  int64_t b = 2, h = 3, j = 72, k = 136, i = 136, p = 64, u = 264;
};

class TransformedContraction {
public:
  TransformedContraction(std::string name, const std::map<char, int64_t> &extents, DType type)
      : builder(std::move(name), extents), type(type) {}
  ValueId input(const std::string &name, const std::string &letters) {
    return input(name, letters, type);
  }
  ValueId input(const std::string &name, const std::string &letters, DType own) {
    return builder.input(name, letters, own);
  }
  int map(const std::string &name, const std::string &spelling, std::vector<ValueId> operands,
          const std::string &result, const std::string &letters) {
    const ValueId value = builder.op(name, OperatorClass::elementwise, std::move(operands), result,
                                     letters, "", type);
    if (!spelling.empty()) builder.last().expression = Expression::parse(spelling);
    return value;
  }
  int globalScaling(int x, int factors, const std::string &letters, int64_t tile) {
    const int value = builder.op("global_scaling", OperatorClass::elementwise, {x, factors},
                                 "scaled", letters, "", type);
    builder.last().attributes = {{"axis", int64_t(letters.size() - 1)}, {"tile", tile}};
    return value;
  }
  int contract(int a, int b, const std::string &spec, const std::string &reduced,
               double scale = 1) {
    const std::string letters = spec.substr(spec.find('>') + 1);
    const int value =
        builder.op("contract", OperatorClass::contraction, {a, b}, "gemm", letters, reduced, type);
    builder.last().attributes = {{"spec", spec}};
    if (scale != 1) builder.last().attributes["scale"] = scale;
    return value;
  }
  /// Attributes of the last op.
  void set(std::map<std::string, Attribute> attributes) {
    builder.last().attributes = std::move(attributes);
  }
  /// What the last op computes of the coordinates of its result's dimensions.
  void compute(const Expression &expression) { builder.compute(expression); }
  Kernel build(int output) { return builder.build({output}); }

private:
  KernelBuilder builder;
  DType type;
};

/// Normalization applied on load: statistics by rows, in fp32, gain and shift along k.
inline Kernel normalizedProjection(const PrologueExtents &e, DType type) {
  TransformedContraction made("normalized_projection",
                              {{'b', e.b}, {'j', e.j}, {'i', e.i}, {'u', e.u}}, type);
  const int x = made.input("x", "bji"), mean = made.input("mean", "bj", DType::f32),
            rstd = made.input("rstd", "bj", DType::f32);
  const int gamma = made.input("gamma", "i"), beta = made.input("beta", "i"),
            w = made.input("w", "iu");
  const int centered = made.map("sub", "{0} - {1}", {x, mean}, "centered", "bji");
  const int normal = made.map("mul", "{0} * {1}", {centered, rstd}, "normal", "bji");
  const int scaled = made.map("mul", "{0} * {1}", {normal, gamma}, "gained", "bji");
  return made.build(made.contract(made.map("add", "{0} + {1}", {scaled, beta}, "shifted", "bji"), w,
                                  "bji,iu->bju", "i"));
}
/// The same where the statistics are the sums that an epilogue left (ir/SPEC.md, "Element-wise
/// class"): of an RMS norm those of squares alone.
inline Kernel reducedProjection(const PrologueExtents &e, DType type, bool isRms) {
  TransformedContraction made(isRms ? "rms_summed_projection" : "summed_projection",
                              {{'b', e.b}, {'j', e.j}, {'i', e.i}, {'u', e.u}}, type);
  const int x = made.input("x", "bji"),
            sum = isRms ? ValueId() : made.input("sum", "bj", DType::f32),
            squares = made.input("squares", "bj", DType::f32);
  const int gamma = made.input("gamma", "i"), w = made.input("w", "iu");
  const int normal = isRms
                         ? made.map("rms_normalize", "{0} * weft::rsqrt({1} / {count} + {epsilon})",
                                    {x, squares}, "normal", "bji")
                         : made.map("normalize",
                                    "({0} - {1} / {count}) * weft::rsqrt(weft::relu({2} / {count} "
                                    "- {1} / {count} * ({1} / {count})) + {epsilon})",
                                    {x, sum, squares}, "normal", "bji");
  made.set({{"count", e.i}, {"epsilon", 1e-5}});
  return made.build(made.contract(made.map("mul", "{0} * {1}", {normal, gamma}, "gained", "bji"), w,
                                  "bji,iu->bju", "i"));
}
/// Probabilities of attention, finished by rows of every head.
inline Kernel scaledContext(const PrologueExtents &e, DType type) {
  TransformedContraction made("scaled_context",
                              {{'b', e.b}, {'h', e.h}, {'j', e.j}, {'k', e.k}, {'p', e.p}}, type);
  const int x = made.input("exponentials", "hbjk"),
            inverse = made.input("inverse", "hbj", DType::f32), v = made.input("v", "phbk");
  return made.build(made.contract(made.map("mul", "{0} * {1}", {x, inverse}, "prob", "hbjk"), v,
                                  "hbjk,phbk->phbj", "k"));
}
/// The same by sub-vectors, with the values as the contraction's first operand.
inline Kernel recomposedContext(const PrologueExtents &e, DType type, int64_t tile = 32) {
  TransformedContraction made(
      "recomposed_context",
      {{'b', e.b}, {'h', e.h}, {'j', e.j}, {'k', e.k}, {'n', (e.k + tile - 1) / tile}, {'p', e.p}},
      type);
  const int x = made.input("exponentials", "hbjk"),
            factors = made.input("factors", "hbjn", DType::f32), v = made.input("v", "phbk");
  return made.build(
      made.contract(v, made.globalScaling(x, factors, "hbjk", tile), "phbk,hbjk->phbj", "k"));
}
/// With the exponentials as the contraction's first operand, and a bias behind it.
inline Kernel recomposedRows(const PrologueExtents &e, DType type, int64_t tile, bool hasBias) {
  TransformedContraction made(
      "recomposed_rows",
      {{'b', e.b}, {'h', e.h}, {'j', e.j}, {'k', e.k}, {'n', (e.k + tile - 1) / tile}, {'p', e.p}},
      type);
  const int x = made.input("exponentials", "hbjk"),
            factors = made.input("factors", "hbjn", DType::f32), v = made.input("v", "phbk");
  const int bias = hasBias ? made.input("bias", "p") : ValueId();
  const int c =
      made.contract(made.globalScaling(x, factors, "hbjk", tile), v, "hbjk,phbk->hbjp", "k", 0.5);
  return made.build(hasBias ? made.map("bias", "{0} + {1}", {c, bias}, "biased", "hbjp") : c);
}
/// Sub-vectors of whole slices, so that sums of products are scaled where the rows are those of the
/// result.
inline std::vector<Kernel> scaledKTiles(const PrologueExtents &e, DType type) {
  const int64_t tile = e.k > 256 ? 128 : 64;
  return {recomposedContext(e, type, tile), recomposedRows(e, type, tile, true)};
}
/// Of another width in memory, with one scale for all.
inline Kernel castProjection(const PrologueExtents &e, DType type, DType stored) {
  TransformedContraction made("cast_projection", {{'b', e.b}, {'j', e.j}, {'i', e.i}, {'u', e.u}},
                              type);
  const int x = made.input("x", "bji"), w = made.input("w", "iu", stored),
            scale = made.input("scale", "", DType::f32);
  const int wide = made.map("cast", "{0}", {w}, "wide", "iu");
  return made.build(made.contract(x, made.map("mul", "{0} * {1}", {wide, scale}, "scaled", "iu"),
                                  "bji,iu->bju", "i", 0.5));
}
/// A function that is no number at zero, which is what lies beyond the end of k, and not zero
/// either: w / w * w + shift. One shift a column. Tests have no zeros in what divides.
inline Kernel dividedProjection(const PrologueExtents &e, DType type) {
  TransformedContraction made("divided_projection",
                              {{'b', e.b}, {'j', e.j}, {'i', e.i}, {'u', e.u}}, type);
  const int x = made.input("x", "bji"), w = made.input("w", "iu"), shift = made.input("shift", "u");
  const int one = made.map("div", "{0} / {1}", {w, w}, "one", "iu"),
            again = made.map("mul", "{0} * {1}", {one, w}, "again", "iu");
  return made.build(made.contract(x, made.map("add", "{0} + {1}", {again, shift}, "shifted", "iu"),
                                  "bji,iu->bju", "i"));
}
/// A scale before and a bias behind.
inline Kernel scaledBiasedProjection(const PrologueExtents &e, DType type) {
  TransformedContraction made("scaled_biased_projection",
                              {{'b', e.b}, {'j', e.j}, {'i', e.i}, {'u', e.u}}, type);
  const int x = made.input("x", "bji"), gain = made.input("gain", "i"), w = made.input("w", "iu"),
            bias = made.input("bias", "u");
  const int c = made.contract(made.map("mul", "{0} * {1}", {x, gain}, "gained", "bji"), w,
                              "bji,iu->bju", "i");
  return made.build(made.map("bias", "{0} + {1}", {c, bias}, "biased", "bju"));
}

inline std::vector<Kernel> transformedContractions(const PrologueExtents &extents, DType type) {
  const DType other = type == DType::f16 ? DType::bf16 : DType::f16;
  return {normalizedProjection(extents, type),
          scaledContext(extents, type),
          recomposedContext(extents, type),
          castProjection(extents, type, DType::f32),
          castProjection(extents, type, DType::f8e4m3),
          castProjection(extents, type, other),
          dividedProjection(extents, type),
          reducedProjection(extents, type, false),
          reducedProjection(extents, type, true),
          scaledBiasedProjection(extents, type)};
}

}  // namespace weft::samples
