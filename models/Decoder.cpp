// The GPT-2 layer: layer normalization before attention and feed-forward; the residual stream stays
// unnormalized.
#include "models/Families.h"

namespace weft::models {

mlir::Value decoderLayer(LayerBuilder &layer, mlir::Value x) {
  const mlir::Value normalized = layer.ofOperands(layer.layerNorm("norm1", x, "1"));
  const mlir::Value attention = layer.dropout(
      "attention_kept", multiHeadAttention(layer, normalized, normalized), &Dropouts::attention);
  const mlir::Value attended = layer.residual("residual1", attention, x);
  const mlir::Value transformed =
      feedForward(layer, layer.ofOperands(layer.layerNorm("norm2", attended, "2")));
  return layer.residual("residual2",
                        layer.dropout("feed_forward_kept", transformed, &Dropouts::feedForward),
                        attended);
}

mlir::Value buildDecoder(LayerBuilder &layer) {
  const mlir::Value x = layer.stream("x", "bji");
  return layer.specification().attentionOnly ? multiHeadAttention(layer, x, x)
                                             : decoderLayer(layer, x);
}

}  // namespace weft::models
