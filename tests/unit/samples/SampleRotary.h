// Projections of heads with the rotary embedding that follows them, as decoders have them.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleTokens.h"

namespace weft::samples {

struct RotaryExtents {
  int64_t b = 2, j = 40, g = 3, p = 64, i = 24;
};
/// What differs from pairs of halves that all heads turn by their positions.
struct RotaryForm {
  bool isHalved = true, isReverse = false;
  int64_t turned = 0;          ///< elements of a head; 0: all
  int64_t begin = 0, end = 0;  ///< heads that are turned; none: all
  bool hasStarts = false;      ///< of sequences
  bool hasResidual = false;    ///< an operand of the result's shape behind it
  double factor = 1;
  bool isStretched = false;  ///< Llama 3.1's frequencies
};

/// Sets the attributes and the expression of the last op, a rotary embedding of values whose last
/// axis is that of pairs and whose last but one that of heads.
inline void describeRotary(KernelBuilder &builder, const RotaryForm &form, int64_t extent,
                           int position, int rank, DType type, bool isPacked) {
  const int64_t turned = form.turned == 0 ? extent : form.turned;
  const RotaryStyle style = form.isHalved ? RotaryStyle::halved : RotaryStyle::interleaved;
  RotaryShape shape{.style = style,
                    .isReverse = form.isReverse,
                    .isShort = type != DType::f32,
                    .hasStarts = form.hasStarts || isPacked,
                    .isPacked = isPacked,
                    .dimension = rank - 1,
                    .position = position,
                    .rank = rank,
                    .extent = extent,
                    .turned = turned,
                    .factor = form.factor};
  std::map<std::string, Attribute> &attributes = builder.last().attributes;
  attributes = {{"position", int64_t(position)},
                {"dim", int64_t(rank - 1)},
                {"base", 10000.0},
                {"style", std::string(nameOf(style))}};
  if (form.isReverse) attributes["direction"] = std::string("reverse");
  if (form.turned > 0) attributes["turned"] = turned;
  if (form.factor != 1) attributes["factor"] = form.factor;
  if (form.isStretched) {
    shape.original = 64, shape.low = 1, shape.high = 4;
    attributes["original"] = int64_t(64), attributes["low"] = 1.0, attributes["high"] = 4.0;
  }
  if (form.hasStarts || isPacked)
    attributes["along"] = std::vector<int64_t>{isPacked ? position : 0};
  if (form.end > 0) {
    shape.among = rank - 2, shape.begin = form.begin, shape.end = form.end;
    attributes["among"] = int64_t(rank - 2), attributes["begin"] = form.begin,
    attributes["end"] = form.end;
  }
  builder.compute(rotaryExpression(shape));
}

/// y = turned(w x) [+ rest] over (b, j, g, p).
inline Kernel rotatedProjection(const RotaryExtents &extents, DType type, const RotaryForm &form) {
  KernelBuilder builder(
      "rotated_projection",
      {{'b', extents.b}, {'g', extents.g}, {'i', extents.i}, {'j', extents.j}, {'p', extents.p}});
  const int w = builder.input("w", "gpi", type), x = builder.input("x", "bji", type);
  std::vector<ValueId> operands{ValueId()};
  if (form.hasStarts) operands.push_back(builder.input("starts", "b", DType::i32));
  const ValueId rest = form.hasResidual ? builder.input("rest", "bjgp", type) : ValueId();
  operands[0] =
      builder.op("contract", OperatorClass::contraction, {w, x}, "heads", "bjgp", "i", type);
  builder.last().attributes = {{"spec", std::string("gpi,bji->bjgp")}};
  int y = builder.op("rotary", OperatorClass::elementwise, operands, "turned", "bjgp", "", type);
  describeRotary(builder, form, extents.p, 1, 4, type, false);
  if (form.hasResidual) {
    y = builder.op("residual", OperatorClass::elementwise, {y, rest}, "sum", "bjgp", "", type);
    builder.last().expression = Expression::parse("{0} + {1}");
  }
  return builder.build({y});
}

/// Of packed tokens over (t, g, p): masked before and behind, positions from where sequences start.
inline Kernel rotatedTokens(const RotaryExtents &extents, DType type, const RotaryForm &form) {
  const int64_t sequences = 3;
  KernelBuilder builder("rotated_tokens", {{'g', extents.g},
                                           {'i', extents.i},
                                           {'n', sequences + 1},
                                           {'p', extents.p},
                                           {'t', extents.b * extents.j}});
  const TokenExtents tokens{.sequences = sequences};
  const int w = builder.input("w", "gpi", type), x = builder.input("x", "ti", type),
            starts = builder.input("starts", "t", DType::i32),
            offsets = builder.input("offsets", "n", DType::i32);
  const int heads =
      builder.op("contract", OperatorClass::contraction, {w, x}, "heads", "tgp", "i", type);
  builder.last().attributes = {{"spec", std::string("gpi,ti->tgp")}};
  const int masked = maskTokens(builder, heads, offsets, tokens, "masked", type, "tgp");
  const int turned =
      builder.op("rotary", OperatorClass::elementwise, {masked, starts}, "turned", "tgp", "", type);
  describeRotary(builder, form, extents.p, 0, 3, type, true);
  return builder.build({maskTokens(builder, turned, offsets, tokens, "y", type, "tgp", true)});
}

}  // namespace weft::samples
