// The layers of T5: the residual stream stays unnormalized, positions are biases of scores.
#include "models/Families.h"

namespace weft::models {

mlir::Value buildT5(LayerBuilder &layer) {
  const mlir::Value x = layer.stream("x", "bji");
  const LayerSpecification &specification = layer.specification();
  if (specification.attentionOnly) return multiHeadAttention(layer, x, x);

  const mlir::Value normalized = layer.ofOperands(layer.rmsNorm("norm1", x, "gamma1"));
  const mlir::Value attention = layer.dropout(
      "attention_kept", multiHeadAttention(layer, normalized, normalized), &Dropouts::attention);
  mlir::Value stream = layer.residual("residual1", attention, x);
  if (specification.crossAttention) {
    const mlir::Value queries =
        layer.ofOperands(layer.rmsNorm("norm_cross", stream, "gamma_cross"));
    const mlir::Value crossed = crossAttention(layer, queries, layer.argument("memory", "bmi"));
    stream = layer.residual("residual_cross",
                            layer.dropout("cross_kept", crossed, &Dropouts::attention), stream);
  }
  const mlir::Value middle = layer.ofOperands(layer.rmsNorm("norm2", stream, "gamma2"));
  const mlir::Value transformed =
      specification.gatedFeedForward ? gatedFeedForward(layer, middle) : feedForward(layer, middle);
  return layer.residual(
      "residual2", layer.dropout("feed_forward_kept", transformed, &Dropouts::feedForward), stream);
}

}  // namespace weft::models
