// Attention in two forms that share their middle: with projections from the embedding, and the bare
// core.
#include "models/Families.h"

#include <cmath>

namespace weft::models {
namespace {

std::optional<double> scoreScale(const LayerBuilder &layer) {
  if (!layer.specification().scaleScores) return std::nullopt;
  return 1.0 / std::sqrt(double(layer.dim('p')));
}

}  // namespace

mlir::Value attend(LayerBuilder &layer, mlir::Value q, mlir::Value k, mlir::Value v,
                   const std::string &scoreSpec, const std::string &sumSpec) {
  return weightedSum(layer, layer.scores("score", scoreSpec, k, q, scoreScale(layer)), v, sumSpec);
}

mlir::Value weightedSum(LayerBuilder &layer, mlir::Value scores, mlir::Value v,
                        const std::string &sumSpec) {
  const mlir::Value seen = layer.mask("masked", scores);
  const mlir::Value probability =
      layer.dropout("kept", layer.softmax("probability", seen, 'k'), &Dropouts::probabilities);
  return layer.contract("weighted", sumSpec, v, probability);
}

namespace {

/// Beltagy et al. 2020, section 3.1: queries of the first a positions see all keys, by separate
/// projections; those of the others see a window and the first a keys.
mlir::Value globalAndLocalHeads(LayerBuilder &layer, mlir::Value x) {
  const bool bias = layer.specification().projectionBias;
  const auto project = [&](const std::string &name, const char *spec, const std::string &suffix,
                           mlir::Value rows) {
    return layer.project(name, spec, "w" + suffix, rows, bias ? "b" + suffix : "");
  };
  const mlir::Value first = layer.slice("x_global", x, 'j', 0, 'a');
  const mlir::Value globalQ = project("q_global", "phi,bai->phba", "q_global", first),
                    globalK = project("k_global", "phi,bki->phbk", "k_global", x),
                    globalV = project("v_global", "whi,bki->whbk", "v_global", x);
  const mlir::Value score =
      layer.scores("score_global", "phbk,phba->hbak", globalK, globalQ, scoreScale(layer));
  const mlir::Value probability =
      layer.dropout("kept_global", layer.softmax("probability_global", layer.padding(score), 'k'),
                    &Dropouts::probabilities);
  const mlir::Value globalResult =
      layer.contract("weighted_global", "whbk,hbak->whba", globalV, probability);

  const mlir::Value others = layer.slice("x_local", x, 'j', layer.dim('a'), 'o');
  const mlir::Value q = project("q", "phi,boi->phbo", "q", others),
                    k = project("k", "phi,bki->phbk", "k", x),
                    v = project("v", "whi,bki->whbk", "v", x);
  layer.setQueryAxis('o');
  const mlir::Value result = attend(layer, q, k, v, "phbk,phbo->hbok", "whbk,hbok->whbo");
  layer.setQueryAxis('j');
  return layer.concat("weighted_all", {globalResult, result}, 'a', 'j');
}

}  // namespace

mlir::Value multiHeadAttention(LayerBuilder &layer, mlir::Value x, mlir::Value source) {
  if (layer.specification().globalPositions) {
    const mlir::Value weighted = globalAndLocalHeads(layer, x);
    return layer.project("attention", "whi,whbj->bji", "wo", weighted,
                         layer.specification().outputBias ? "bo" : "");
  }
  if (layer.specification().disentangled) return disentangledAttention(layer, x);
  const bool bias = layer.specification().projectionBias,
             outputBias = layer.specification().outputBias;
  const mlir::Value q = layer.project("q", "phi,bji->phbj", "wq", x, bias ? "bq" : "");
  const bool isCached = layer.specification().cache.has_value();
  const mlir::Value k = layer.project("k", isCached ? "phi,bji->bhjp" : "phi,bki->phbk", "wk",
                                      source, bias ? "bk" : "");
  const mlir::Value v = layer.project("v", isCached ? "whi,bji->bhjw" : "whi,bki->whbk", "wv",
                                      source, bias ? "bv" : "");
  mlir::Value keys, values;
  if (isCached) {
    keys = layer.cached("keys", "key_cache", "bhkp", k);
    values = layer.cached("values", "value_cache", "bhkw", v);
  }
  const mlir::Value weighted =
      isCached ? attend(layer, q, keys, values, "bhkp,phbj->hbjk", "bhkw,hbjk->whbj")
               : attend(layer, q, k, v, "phbk,phbj->hbjk", "whbk,hbjk->whbj");
  return layer.project("attention", "whi,whbj->bji", "wo", weighted, outputBias ? "bo" : "");
}

mlir::Value crossAttention(LayerBuilder &layer, mlir::Value x, mlir::Value memory) {
  const bool bias = layer.specification().projectionBias,
             outputBias = layer.specification().outputBias;
  layer.setPrefix("cross_");
  const mlir::Value q = layer.project("q", "phi,bji->phbj", "wq", x, bias ? "bq" : "");
  const mlir::Value k = layer.project("k", "phi,bmi->phbm", "wk", memory, bias ? "bk" : "");
  const mlir::Value v = layer.project("v", "whi,bmi->whbm", "wv", memory, bias ? "bv" : "");
  const mlir::Value score = layer.contract("score", "phbm,phbj->hbjm", k, q, scoreScale(layer));
  const mlir::Value probability =
      layer.dropout("kept", layer.softmax("probability", score, 'm'), &Dropouts::probabilities);
  const mlir::Value weighted = layer.contract("weighted", "whbm,hbjm->whbj", v, probability);
  const mlir::Value attention =
      layer.project("attention", "whi,whbj->bji", "wo", weighted, outputBias ? "bo" : "");
  layer.setPrefix("");
  return attention;
}

mlir::Value buildAttention(LayerBuilder &layer) {
  const bool isGrouped = layer.dim('g') != layer.dim('h');
  const mlir::Value q = layer.argument("q", "bhjp");
  if (!isGrouped) {
    const mlir::Value k = layer.argument("k", "bhkp"), v = layer.argument("v", "bhkw");
    return attend(layer, q, k, v, "bhkp,bhjp->bhjk", "bhkw,bhjk->bhjw");
  }
  const mlir::Value k = layer.argument("k", "bgkp"), v = layer.argument("v", "bgkw");
  const mlir::Value grouped = layer.splitAxis("q_grouped", q, 'h', "gr");
  const mlir::Value weighted =
      attend(layer, grouped, k, v, "bgkp,bgrjp->bgrjk", "bgkw,bgrjk->bgrjw");
  return layer.mergeAxes("attention", weighted, 'g', 'h');
}

}  // namespace weft::models
