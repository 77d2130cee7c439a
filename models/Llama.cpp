// The Llama layer: query heads are two axes, g key/value groups of r heads each, so that grouping
// needs no copies.
#include "models/Families.h"

namespace weft::models {
namespace {

mlir::Value groupedAttention(LayerBuilder &layer, mlir::Value x) {
  const bool bias = layer.specification().projectionBias,
             outputBias = layer.specification().outputBias;
  const mlir::Value q = layer.project("q", "pgri,bji->pgrbj", "wq", x, bias ? "bq" : "");
  const bool isCached = layer.specification().cache.has_value();
  const mlir::Value k =
      layer.project("k", isCached ? "pgi,bji->bgjp" : "pgi,bki->pgbk", "wk", x, bias ? "bk" : "");
  const mlir::Value v =
      layer.project("v", isCached ? "wgi,bji->bgjw" : "wgi,bki->wgbk", "wv", x, bias ? "bv" : "");
  const bool normalizes = layer.specification().normalizesHeads;
  const mlir::Value qNormed = normalizes ? layer.rmsNorm("q_norm", q, "gamma_q", 'p') : q,
                    kNormed = normalizes ? layer.rmsNorm("k_norm", k, "gamma_k", 'p') : k;
  const mlir::Value qTurned = layer.rotary("q_turned", qNormed, 'j', 'p'),
                    kTurned = layer.rotary("k_turned", kNormed, isCached ? 'j' : 'k', 'p');
  mlir::Value keys, values;
  if (isCached) {
    keys = layer.cached("keys", "key_cache", "bgkp", kTurned);
    values = layer.cached("values", "value_cache", "bgkw", v);
  }
  const mlir::Value weighted =
      isCached ? attend(layer, qTurned, keys, values, "bgkp,pgrbj->grbjk", "bgkw,grbjk->wgrbj")
               : attend(layer, qTurned, kTurned, v, "pgbk,pgrbj->grbjk", "wgbk,grbjk->wgrbj");
  return layer.project("attention", "wgri,wgrbj->bji", "wo", weighted, outputBias ? "bo" : "");
}

}  // namespace

mlir::Value llamaLayer(LayerBuilder &layer, mlir::Value x) {
  const mlir::Value attention =
      groupedAttention(layer, layer.ofOperands(layer.rmsNorm("norm1", x, "gamma1")));
  const mlir::Value attended = layer.residual(
      "residual1", layer.dropout("attention_kept", attention, &Dropouts::attention), x);
  const mlir::Value transformed =
      gatedFeedForward(layer, layer.ofOperands(layer.rmsNorm("norm2", attended, "gamma2")));
  return layer.residual("residual2",
                        layer.dropout("feed_forward_kept", transformed, &Dropouts::feedForward),
                        attended);
}

mlir::Value buildLlama(LayerBuilder &layer) {
  const mlir::Value x = layer.stream("x", "bji");
  return layer.specification().attentionOnly ? groupedAttention(layer, x) : llamaLayer(layer, x);
}

}  // namespace weft::models
