// Several layers in sequence, and what a whole model has around them: embeddings before the
// first, a last norm, a pooler or a projection to the vocabulary behind the last.
#include "models/Families.h"

using namespace std::string_literals;

namespace weft::models {
namespace {

char tableColumns(const ModelSpecification &model) { return model.embedding > 0 ? 'd' : 'i'; }

/// Tables are parameters, so that a weight file fills them; sums in the order of the published
/// models. Narrow tables are added and normalized as such, and then projected.
mlir::Value embed(LayerBuilder &layer, mlir::Value table) {
  const ModelSpecification &model = layer.specification().model;
  const char columns = tableColumns(model);
  const mlir::Value tokens = layer.marked(layer.indices("tokens", "bj"), TrainingRole::tokens);
  mlir::Value x = layer.widened("embedded_sum", layer.gather("embedded", table, tokens));
  if (model.embeddingScale != 1) x = layer.scale("embedded_scaled", x, model.embeddingScale);
  if (model.tokenTypes > 0) {
    const mlir::Value types = layer.indices("types", "bj");
    const mlir::Value ofTypes =
        layer.gather("embedded_types",
                     layer.parameter("type_table", "s"s + columns, LayerBuilder::drawn), types);
    x = layer.residual("typed", x, ofTypes);
  }
  if (model.hasPositions)
    x = layer.bias("positioned", x, "position_table", "j"s + columns, LayerBuilder::drawn);
  if (model.dropsBeforeNorm) x = layer.dropout("embedding_kept", x, &Dropouts::embedding);
  if (layer.specification().family == Family::encoder || model.normalizesEmbeddings)
    x = layer.layerNorm("norm0", x, "0", columns);
  if (!model.dropsBeforeNorm) x = layer.dropout("embedding_kept", x, &Dropouts::embedding);
  if (model.embedding == 0) return x;
  return layer.widened("widened_sum",
                       layer.project("widened", "id,bjd->bji", "w_embedding",
                                     layer.operand("norm0_operand", x), "b_embedding"));
}

mlir::Value oneLayer(LayerBuilder &layer, mlir::Value x) {
  switch (layer.specification().family) {
    case Family::decoder: return decoderLayer(layer, x);
    case Family::llama: return llamaLayer(layer, x);
    default: return encoderLayer(layer, x, x);
  }
}

/// Families that normalize before each block normalize once more behind the last.
mlir::Value lastNorm(LayerBuilder &layer, mlir::Value x) {
  switch (layer.specification().family) {
    case Family::decoder: return layer.layerNorm("last_norm", x, "_last");
    case Family::llama: return layer.rmsNorm("last_norm", x, "gamma_last");
    default: return x;
  }
}

mlir::Value pool(LayerBuilder &layer, mlir::Value x) {
  const mlir::Value row = layer.operand(
      "first_operand", layer.mergeAxes("first_row", layer.first("first", x, 'j'), 'b', 'b'));
  return layer.tanh("pooled", layer.project("pool", "ei,bi->be", "w_pool", row, "b_pool"));
}

/// Of each token against its label, times its weight, added up.
mlir::Value loss(LayerBuilder &layer, mlir::Value logits) {
  const mlir::Value labels = layer.marked(layer.indices("labels", "bj"), TrainingRole::labels),
                    weights = layer.marked(layer.factors("weights", "bj"), TrainingRole::weights);
  return layer.weightedLoss("loss", layer.crossEntropy("losses", logits, labels, 'v'), weights);
}

}  // namespace

std::vector<mlir::Value> buildLayers(LayerBuilder &layer) {
  const LayerSpecification &specification = layer.specification();
  const ModelSpecification &model = specification.model;
  const bool isWhole = specification.isWhole;
  const mlir::Value table =
      isWhole ? layer.parameter("token_table", "v"s + tableColumns(model), LayerBuilder::drawn)
              : mlir::Value();
  mlir::Value x = isWhole ? embed(layer, table) : layer.stream("x", "bji");
  for (int64_t number = 1; number <= specification.layers; ++number) {
    layer.setLayer(number);
    x = oneLayer(layer, x);
  }
  layer.setLayer(0);
  if (!isWhole) return {x};
  x = lastNorm(layer, x);
  if (model.hasLogits) x = layer.operand("last_operand", x);
  if (!model.hasLogits) return model.hasPooler ? std::vector{x, pool(layer, x)} : std::vector{x};
  const mlir::Value logits = model.isTied
                                 ? layer.contract("logits", "vi,bji->bjv", table, x)
                                 : layer.project("logits", "vi,bji->bjv", "output_weight", x);
  return {specification.hasLoss ? loss(layer, logits) : logits};
}

}  // namespace weft::models
