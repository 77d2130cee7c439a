// The decoder layer of the first transformer: self attention, attention over the encoder's memory,
// feed-forward, each followed by dropout, residual and layer normalization.
#include "models/Families.h"

namespace weft::models {

mlir::Value buildTransformerDecoder(LayerBuilder &layer) {
  const mlir::Value x = layer.stream("x", "bji");
  const mlir::Value operand = layer.operand("x_operand", x);
  const mlir::Value attention = multiHeadAttention(layer, operand, operand);
  if (layer.specification().attentionOnly) return attention;

  const mlir::Value attended = layer.residual(
      "residual1", layer.dropout("attention_kept", attention, &Dropouts::attention), x);
  const mlir::Value queries = layer.layerNorm("norm1", attended, "1");
  const mlir::Value crossed = crossAttention(layer, layer.operand("norm1_operand", queries),
                                             layer.argument("memory", "bmi"));
  const mlir::Value informed = layer.residual(
      "residual2", layer.dropout("cross_kept", crossed, &Dropouts::attention), queries);
  const mlir::Value middle = layer.layerNorm("norm2", informed, "2");
  const mlir::Value transformed =
      layer.dropout("feed_forward_kept", feedForward(layer, layer.operand("norm2_operand", middle)),
                    &Dropouts::feedForward);
  return layer.layerNorm("norm3", layer.residual("residual3", transformed, middle), "3");
}

}  // namespace weft::models
