// The masked-token model: embeddings, a stack of encoder layers, logits, and the loss at the masked
// positions.
#include "models/Families.h"

#include "kernel/Error.h"

namespace weft::models {

mlir::Value buildMaskedToken(LayerBuilder &layer) {
  const mlir::Value tokens = layer.marked(layer.indices("tokens", "bj"), TrainingRole::tokens),
                    labels = layer.marked(layer.indices("labels", "bj"), TrainingRole::labels),
                    weights = layer.marked(layer.factors("weights", "bj"), TrainingRole::weights);
  const mlir::Value embedded = layer.widened(
      "embedded_sum",
      layer.gather("embedded", layer.parameter("token_table", "vi", LayerBuilder::drawn), tokens));
  const mlir::Value positioned =
      layer.bias("positioned", embedded, "position_table", "ji", LayerBuilder::drawn);
  mlir::Value x = layer.dropout("embedding_kept", layer.layerNorm("norm0", positioned, "0"),
                                &Dropouts::embedding);
  for (int64_t number = 1; number <= layer.specification().layers; ++number) {
    layer.setLayer(number);
    x = encoderLayer(layer, x, x);
  }
  layer.setLayer(0);
  const mlir::Value logits = layer.project("logits", "vi,bji->bjv", "output_weight",
                                           layer.operand("last_operand", x), "output_bias");
  return layer.weightedLoss("loss", layer.crossEntropy("losses", logits, labels, 'v'), weights);
}

}  // namespace weft::models
