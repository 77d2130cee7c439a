// The encoder layer: attention, then feed-forward, each followed by dropout, residual and layer
// normalization.
#include "models/Families.h"

namespace weft::models {

mlir::Value feedForward(LayerBuilder &layer, mlir::Value x) {
  const bool bias = layer.specification().feedForwardBias;
  const mlir::Value hidden = layer.project("hidden", "ui,bji->bju", "w1", x, bias ? "b1" : "");
  const mlir::Value active =
      layer.dropout("active_kept", layer.activate("active", hidden), &Dropouts::activation);
  return layer.project("feed_forward", "iu,bju->bji", "w2", active, bias ? "b2" : "");
}

mlir::Value gatedFeedForward(LayerBuilder &layer, mlir::Value x) {
  const bool bias = layer.specification().feedForwardBias;
  const mlir::Value gate = layer.project("gate", "ui,bji->bju", "w_gate", x, bias ? "b_gate" : "");
  const mlir::Value up = layer.project("up", "ui,bji->bju", "w_up", x, bias ? "b_up" : "");
  const mlir::Value gated =
      layer.dropout("gated_kept", layer.multiply("gated", layer.activate("gate_active", gate), up),
                    &Dropouts::activation);
  return layer.project("feed_forward", "iu,bju->bji", "w_down", gated, bias ? "b_down" : "");
}

mlir::Value encoderLayer(LayerBuilder &layer, mlir::Value x, mlir::Value source) {
  const mlir::Value operand = layer.operand("x_operand", x);
  const mlir::Value attention = multiHeadAttention(layer, operand, source == x ? operand : source);
  if (layer.specification().attentionOnly) return attention;

  const mlir::Value attended = layer.residual(
      "residual1", layer.dropout("attention_kept", attention, &Dropouts::attention), x);
  const mlir::Value middle = layer.layerNorm("norm1", attended, "1");
  const mlir::Value transformed =
      layer.dropout("feed_forward_kept", feedForward(layer, layer.operand("norm1_operand", middle)),
                    &Dropouts::feedForward);
  return layer.layerNorm("norm2", layer.residual("residual2", transformed, middle), "2");
}

mlir::Value buildEncoder(LayerBuilder &layer) {
  const mlir::Value x = layer.stream("x", "bji");
  return encoderLayer(layer, x,
                      layer.dim('k') == layer.dim('j') ? x : layer.argument("context", "bki"));
}

}  // namespace weft::models
