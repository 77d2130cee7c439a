// Disentangled attention (DeBERTa): a score is the sum of three products, of query and key, of
// query and a vector of their distance, and of key and another vector of it.
//
// Vectors of distances are projections of rows of relative_table: row j - k + n / 2 for query j and
// key k, clipped to the table. Publications write the third term with k - j (section 3.1); the code
// that trained the published checkpoints has j - k in both, and so has this.
#include "models/Families.h"

#include <cmath>

using namespace std::string_literals;

namespace weft::models {
namespace {

/// Of distances that occur: their axis is `letter`.
struct DistanceVectors {
  mlir::Value rows;
  char letter = 'l';
};

DistanceVectors distanceVectors(LayerBuilder &layer) {
  const mlir::Value table = layer.sharedParameter("relative_table", "ni", LayerBuilder::drawn);
  const int64_t others = layer.dim('n') - layer.dim('l');
  if (others == 0) return {table, 'n'};
  return {layer.slice("relative_rows", table, 'n', others / 2, 'l'), 'l'};
}

/// scale Q Kr and scale K Qr, each added to the scores at its distance.
mlir::Value addDistances(LayerBuilder &layer, mlir::Value score, mlir::Value q, mlir::Value k,
                         double scale) {
  const LayerSpecification &specification = layer.specification();
  if (!specification.hasDistances()) return score;
  const auto [rows, letter] = distanceVectors(layer);
  const auto term = [&](const std::string &name, mlir::Value vectors, mlir::Value x,
                        char position) {
    return layer.contract(name, "ph"s + letter + ",phb" + position + "->hb" + position + letter,
                          vectors, x, scale);
  };
  const std::string projection = "phi,"s + letter + "i->ph" + letter;
  if (specification.queryDistances) {
    const mlir::Value keys = layer.project("position_keys", projection, "w_position_keys", rows);
    score = layer.distanceTerm("score_to_positions", score,
                               term("content_to_position", keys, q, 'j'), "hbj");
  }
  if (!specification.keyDistances) return score;
  const mlir::Value queries = layer.project("position_queries", projection, "w_position_queries",
                                            rows, "b_position_queries");
  return layer.distanceTerm("score_of_positions", score,
                            term("position_to_content", queries, k, 'k'), "hbk");
}

}  // namespace

mlir::Value disentangledAttention(LayerBuilder &layer, mlir::Value x) {
  const LayerSpecification &specification = layer.specification();
  const int terms = 1 + int(specification.queryDistances) + int(specification.keyDistances);
  const double scale = 1 / std::sqrt(double(terms * layer.dim('p')));
  const mlir::Value q = layer.project("q", "phi,bji->phbj", "wq", x, "bq"),
                    k = layer.project("k", "phi,bki->phbk", "wk", x),
                    v = layer.project("v", "whi,bki->whbk", "wv", x, "bv");
  const mlir::Value score = layer.contract("score", "phbk,phbj->hbjk", k, q, scale);
  const mlir::Value weighted =
      weightedSum(layer, addDistances(layer, score, q, k, scale), v, "whbk,hbjk->whbj");
  return layer.project("attention", "whi,whbj->bji", "wo", weighted, "bo");
}

}  // namespace weft::models
