// Tables of the names of weights; see WeightNames.h.
#include "models/WeightNames.h"

#include "kernel/LayerNames.h"
#include "kernel/Nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weft::models {
namespace {

struct Row {
  std::string_view parameter;  ///< without its layer
  std::string_view name;       ///< "#" stands for the layer's number, from 0
  std::string_view dimensions;
  double plus = 0;  ///< that the parameter is more than the tensor
};

struct Names {
  std::string_view family, prefix;
  std::vector<Row> rows;
  /// Tensors that files have beside the weights: whole names, or beginnings that end in ".".
  std::vector<std::string_view> others;
};

/// Rows of models whose layers are BERT's; `positions`: where their table of positions begins.
std::vector<Row> rowsOfBert(std::string_view positions = "<j i",
                            const std::vector<Row> &others = {
                                {"w_pool", "pooler.dense.weight", "e i"},
                                {"b_pool", "pooler.dense.bias", "e"}}) {
  std::vector<Row> rows = {{"token_table", "embeddings.word_embeddings.weight", "v i"},
                           {"position_table", "embeddings.position_embeddings.weight", positions},
                           {"type_table", "embeddings.token_type_embeddings.weight", "s i"},
                           {"gamma0", "embeddings.LayerNorm.weight", "i"},
                           {"beta0", "embeddings.LayerNorm.bias", "i"},
                           {"wq", "encoder.layer.#.attention.self.query.weight", "hp i"},
                           {"bq", "encoder.layer.#.attention.self.query.bias", "hp"},
                           {"wk", "encoder.layer.#.attention.self.key.weight", "hp i"},
                           {"bk", "encoder.layer.#.attention.self.key.bias", "hp"},
                           {"wv", "encoder.layer.#.attention.self.value.weight", "hw i"},
                           {"bv", "encoder.layer.#.attention.self.value.bias", "hw"},
                           {"wo", "encoder.layer.#.attention.output.dense.weight", "i hw"},
                           {"bo", "encoder.layer.#.attention.output.dense.bias", "i"},
                           {"gamma1", "encoder.layer.#.attention.output.LayerNorm.weight", "i"},
                           {"beta1", "encoder.layer.#.attention.output.LayerNorm.bias", "i"},
                           {"w1", "encoder.layer.#.intermediate.dense.weight", "u i"},
                           {"b1", "encoder.layer.#.intermediate.dense.bias", "u"},
                           {"w2", "encoder.layer.#.output.dense.weight", "i u"},
                           {"b2", "encoder.layer.#.output.dense.bias", "i"},
                           {"gamma2", "encoder.layer.#.output.LayerNorm.weight", "i"},
                           {"beta2", "encoder.layer.#.output.LayerNorm.bias", "i"}};
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

/// Rows of models whose layers are Llama's; what norms multiply with is so much more than the
/// file's.
std::vector<Row> rowsOfLlama(double normOffset) {
  return {{"token_table", "embed_tokens.weight", "v i"},
          {"gamma1", "layers.#.input_layernorm.weight", "i", normOffset},
          {"wq", "layers.#.self_attn.q_proj.weight", "grp i"},
          {"bq", "layers.#.self_attn.q_proj.bias", "grp"},
          {"wk", "layers.#.self_attn.k_proj.weight", "gp i"},
          {"bk", "layers.#.self_attn.k_proj.bias", "gp"},
          {"gamma_q", "layers.#.self_attn.q_norm.weight", "p", normOffset},
          {"gamma_k", "layers.#.self_attn.k_norm.weight", "p", normOffset},
          {"wv", "layers.#.self_attn.v_proj.weight", "gw i"},
          {"bv", "layers.#.self_attn.v_proj.bias", "gw"},
          {"wo", "layers.#.self_attn.o_proj.weight", "i grw"},
          {"bo", "layers.#.self_attn.o_proj.bias", "i"},
          {"gamma2", "layers.#.post_attention_layernorm.weight", "i", normOffset},
          {"w_gate", "layers.#.mlp.gate_proj.weight", "u i"},
          {"b_gate", "layers.#.mlp.gate_proj.bias", "u"},
          {"w_up", "layers.#.mlp.up_proj.weight", "u i"},
          {"b_up", "layers.#.mlp.up_proj.bias", "u"},
          {"w_down", "layers.#.mlp.down_proj.weight", "i u"},
          {"b_down", "layers.#.mlp.down_proj.bias", "i"},
          {"gamma_last", "norm.weight", "i", normOffset},
          {"output_weight", "lm_head.weight", "v i"}};
}

const std::vector<std::string_view> headsOfBert = {
    "embeddings.position_ids", "cls.", "classifier.", "qa_outputs.", "qa_classifier.", "lm_head."};

const std::vector<Names> &allNames() {
  static const std::vector<Names> all = {
      {.family = "bert", .prefix = "bert.", .rows = rowsOfBert(), .others = headsOfBert},
      {.family = "bigbird",
       .prefix = "bert.",
       .rows =
           rowsOfBert("<j i", {{"w_pool", "pooler.weight", "e i"}, {"b_pool", "pooler.bias", "e"}}),
       .others = headsOfBert},
      {.family = "roberta",
       .prefix = "roberta.",
       .rows = rowsOfBert("2<j i"),
       .others = headsOfBert},
      {.family = "longformer",
       .prefix = "longformer.",
       .rows = rowsOfBert(
           "2<j i", {{"wq_global", "encoder.layer.#.attention.self.query_global.weight", "hp i"},
                     {"bq_global", "encoder.layer.#.attention.self.query_global.bias", "hp"},
                     {"wk_global", "encoder.layer.#.attention.self.key_global.weight", "hp i"},
                     {"bk_global", "encoder.layer.#.attention.self.key_global.bias", "hp"},
                     {"wv_global", "encoder.layer.#.attention.self.value_global.weight", "hw i"},
                     {"bv_global", "encoder.layer.#.attention.self.value_global.bias", "hw"},
                     {"w_pool", "pooler.dense.weight", "e i"},
                     {"b_pool", "pooler.dense.bias", "e"}}),
       .others = headsOfBert},
      {.family = "albert",
       .prefix = "albert.",
       .rows =
           {{"token_table", "embeddings.word_embeddings.weight", "v d"},
            {"position_table", "embeddings.position_embeddings.weight", "<j d"},
            {"type_table", "embeddings.token_type_embeddings.weight", "s d"},
            {"gamma0", "embeddings.LayerNorm.weight", "d"},
            {"beta0", "embeddings.LayerNorm.bias", "d"},
            {"w_embedding", "encoder.embedding_hidden_mapping_in.weight", "i d"},
            {"b_embedding", "encoder.embedding_hidden_mapping_in.bias", "i"},
            {"wq", "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight", "hp i"},
            {"bq", "encoder.albert_layer_groups.0.albert_layers.0.attention.query.bias", "hp"},
            {"wk", "encoder.albert_layer_groups.0.albert_layers.0.attention.key.weight", "hp i"},
            {"bk", "encoder.albert_layer_groups.0.albert_layers.0.attention.key.bias", "hp"},
            {"wv", "encoder.albert_layer_groups.0.albert_layers.0.attention.value.weight", "hw i"},
            {"bv", "encoder.albert_layer_groups.0.albert_layers.0.attention.value.bias", "hw"},
            {"wo", "encoder.albert_layer_groups.0.albert_layers.0.attention.dense.weight", "i hw"},
            {"bo", "encoder.albert_layer_groups.0.albert_layers.0.attention.dense.bias", "i"},
            {"gamma1", "encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm.weight",
             "i"},
            {"beta1", "encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm.bias",
             "i"},
            {"w1", "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", "u i"},
            {"b1", "encoder.albert_layer_groups.0.albert_layers.0.ffn.bias", "u"},
            {"w2", "encoder.albert_layer_groups.0.albert_layers.0.ffn_output.weight", "i u"},
            {"b2", "encoder.albert_layer_groups.0.albert_layers.0.ffn_output.bias", "i"},
            {"gamma2", "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.weight",
             "i"},
            {"beta2", "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias",
             "i"},
            {"w_pool", "pooler.weight", "e i"},
            {"b_pool", "pooler.bias", "e"}},
       .others = {"embeddings.position_ids", "predictions.", "sop_classifier.", "classifier.",
                  "qa_outputs."}},
      {.family = "deberta",
       .prefix = "deberta.",
       .rows = {{"token_table", "embeddings.word_embeddings.weight", "v i"},
                {"position_table", "embeddings.position_embeddings.weight", "<j i"},
                {"type_table", "embeddings.token_type_embeddings.weight", "s i"},
                {"gamma0", "embeddings.LayerNorm.weight", "i"},
                {"beta0", "embeddings.LayerNorm.bias", "i"},
                {"relative_table", "encoder.rel_embeddings.weight", "n i"},
                {"wq", "encoder.layer.#.attention.self.in_proj.weight", "h0p i"},
                {"wk", "encoder.layer.#.attention.self.in_proj.weight", "h1p i"},
                {"wv", "encoder.layer.#.attention.self.in_proj.weight", "h2w i"},
                {"bq", "encoder.layer.#.attention.self.q_bias", "hp"},
                {"bv", "encoder.layer.#.attention.self.v_bias", "hw"},
                {"w_position_keys", "encoder.layer.#.attention.self.pos_proj.weight", "hp i"},
                {"w_position_queries", "encoder.layer.#.attention.self.pos_q_proj.weight", "hp i"},
                {"b_position_queries", "encoder.layer.#.attention.self.pos_q_proj.bias", "hp"},
                {"wo", "encoder.layer.#.attention.output.dense.weight", "i hw"},
                {"bo", "encoder.layer.#.attention.output.dense.bias", "i"},
                {"gamma1", "encoder.layer.#.attention.output.LayerNorm.weight", "i"},
                {"beta1", "encoder.layer.#.attention.output.LayerNorm.bias", "i"},
                {"w1", "encoder.layer.#.intermediate.dense.weight", "u i"},
                {"b1", "encoder.layer.#.intermediate.dense.bias", "u"},
                {"w2", "encoder.layer.#.output.dense.weight", "i u"},
                {"b2", "encoder.layer.#.output.dense.bias", "i"},
                {"gamma2", "encoder.layer.#.output.LayerNorm.weight", "i"},
                {"beta2", "encoder.layer.#.output.LayerNorm.bias", "i"}},
       .others = {"embeddings.position_ids", "pooler.", "cls.", "lm_predictions.",
                  "mask_predictions.", "classifier.", "qa_outputs."}},
      {.family = "distilbert",
       .prefix = "distilbert.",
       .rows = {{"token_table", "embeddings.word_embeddings.weight", "v i"},
                {"position_table", "embeddings.position_embeddings.weight", "<j i"},
                {"gamma0", "embeddings.LayerNorm.weight", "i"},
                {"beta0", "embeddings.LayerNorm.bias", "i"},
                {"wq", "transformer.layer.#.attention.q_lin.weight", "hp i"},
                {"bq", "transformer.layer.#.attention.q_lin.bias", "hp"},
                {"wk", "transformer.layer.#.attention.k_lin.weight", "hp i"},
                {"bk", "transformer.layer.#.attention.k_lin.bias", "hp"},
                {"wv", "transformer.layer.#.attention.v_lin.weight", "hw i"},
                {"bv", "transformer.layer.#.attention.v_lin.bias", "hw"},
                {"wo", "transformer.layer.#.attention.out_lin.weight", "i hw"},
                {"bo", "transformer.layer.#.attention.out_lin.bias", "i"},
                {"gamma1", "transformer.layer.#.sa_layer_norm.weight", "i"},
                {"beta1", "transformer.layer.#.sa_layer_norm.bias", "i"},
                {"w1", "transformer.layer.#.ffn.lin1.weight", "u i"},
                {"b1", "transformer.layer.#.ffn.lin1.bias", "u"},
                {"w2", "transformer.layer.#.ffn.lin2.weight", "i u"},
                {"b2", "transformer.layer.#.ffn.lin2.bias", "i"},
                {"gamma2", "transformer.layer.#.output_layer_norm.weight", "i"},
                {"beta2", "transformer.layer.#.output_layer_norm.bias", "i"}},
       .others = {"embeddings.position_ids", "vocab_transform.", "vocab_layer_norm.",
                  "vocab_projector.", "pre_classifier.", "classifier.", "qa_outputs."}},
      {.family = "gpt2",
       .prefix = "transformer.",
       .rows =
           {{"token_table", "wte.weight", "v i"},      {"position_table", "wpe.weight", "<j i"},
            {"gamma1", "h.#.ln_1.weight", "i"},        {"beta1", "h.#.ln_1.bias", "i"},
            {"wq", "h.#.attn.c_attn.weight", "i 0hp"}, {"wk", "h.#.attn.c_attn.weight", "i 1hp"},
            {"wv", "h.#.attn.c_attn.weight", "i 2hw"}, {"bq", "h.#.attn.c_attn.bias", "0hp"},
            {"bk", "h.#.attn.c_attn.bias", "1hp"},     {"bv", "h.#.attn.c_attn.bias", "2hw"},
            {"wo", "h.#.attn.c_proj.weight", "hw i"},  {"bo", "h.#.attn.c_proj.bias", "i"},
            {"gamma2", "h.#.ln_2.weight", "i"},        {"beta2", "h.#.ln_2.bias", "i"},
            {"w1", "h.#.mlp.c_fc.weight", "i u"},      {"b1", "h.#.mlp.c_fc.bias", "u"},
            {"w2", "h.#.mlp.c_proj.weight", "u i"},    {"b2", "h.#.mlp.c_proj.bias", "i"},
            {"gamma_last", "ln_f.weight", "i"},        {"beta_last", "ln_f.bias", "i"},
            {"output_weight", "lm_head.weight", "v i"}},
       .others = {"h.#.attn.bias", "h.#.attn.masked_bias"}},
      {.family = "gpt-neo",
       .prefix = "transformer.",
       .rows = {{"token_table", "wte.weight", "v i"},
                {"position_table", "wpe.weight", "<j i"},
                {"gamma1", "h.#.ln_1.weight", "i"},
                {"beta1", "h.#.ln_1.bias", "i"},
                {"wq", "h.#.attn.attention.q_proj.weight", "hp i"},
                {"wk", "h.#.attn.attention.k_proj.weight", "hp i"},
                {"wv", "h.#.attn.attention.v_proj.weight", "hw i"},
                {"wo", "h.#.attn.attention.out_proj.weight", "i hw"},
                {"bo", "h.#.attn.attention.out_proj.bias", "i"},
                {"gamma2", "h.#.ln_2.weight", "i"},
                {"beta2", "h.#.ln_2.bias", "i"},
                {"w1", "h.#.mlp.c_fc.weight", "u i"},
                {"b1", "h.#.mlp.c_fc.bias", "u"},
                {"w2", "h.#.mlp.c_proj.weight", "i u"},
                {"b2", "h.#.mlp.c_proj.bias", "i"},
                {"gamma_last", "ln_f.weight", "i"},
                {"beta_last", "ln_f.bias", "i"},
                {"output_weight", "lm_head.weight", "v i"}},
       .others = {"h.#.attn.attention.bias", "h.#.attn.attention.masked_bias", "lm_head.weight"}},
      {.family = "bloom",
       .prefix = "transformer.",
       .rows = {{"token_table", "word_embeddings.weight", "v i"},
                {"gamma0", "word_embeddings_layernorm.weight", "i"},
                {"beta0", "word_embeddings_layernorm.bias", "i"},
                {"gamma1", "h.#.input_layernorm.weight", "i"},
                {"beta1", "h.#.input_layernorm.bias", "i"},
                // Queries, keys and values of one head stand together.
                {"wq", "h.#.self_attention.query_key_value.weight", "h0p i"},
                {"wk", "h.#.self_attention.query_key_value.weight", "h1p i"},
                {"wv", "h.#.self_attention.query_key_value.weight", "h2w i"},
                {"bq", "h.#.self_attention.query_key_value.bias", "h0p"},
                {"bk", "h.#.self_attention.query_key_value.bias", "h1p"},
                {"bv", "h.#.self_attention.query_key_value.bias", "h2w"},
                {"wo", "h.#.self_attention.dense.weight", "i hw"},
                {"bo", "h.#.self_attention.dense.bias", "i"},
                {"gamma2", "h.#.post_attention_layernorm.weight", "i"},
                {"beta2", "h.#.post_attention_layernorm.bias", "i"},
                {"w1", "h.#.mlp.dense_h_to_4h.weight", "u i"},
                {"b1", "h.#.mlp.dense_h_to_4h.bias", "u"},
                {"w2", "h.#.mlp.dense_4h_to_h.weight", "i u"},
                {"b2", "h.#.mlp.dense_4h_to_h.bias", "i"},
                {"gamma_last", "ln_f.weight", "i"},
                {"beta_last", "ln_f.bias", "i"},
                {"output_weight", "lm_head.weight", "v i"}},
       .others = {}},
      {.family = "mpt",
       .prefix = "transformer.",
       .rows = {{"token_table", "wte.weight", "v i"},
                {"gamma1", "blocks.#.norm_1.weight", "i"},
                {"wq", "blocks.#.attn.Wqkv.weight", "0hp i"},
                {"wk", "blocks.#.attn.Wqkv.weight", "1hp i"},
                {"wv", "blocks.#.attn.Wqkv.weight", "2hw i"},
                {"wo", "blocks.#.attn.out_proj.weight", "i hw"},
                {"gamma2", "blocks.#.norm_2.weight", "i"},
                {"w1", "blocks.#.ffn.up_proj.weight", "u i"},
                {"w2", "blocks.#.ffn.down_proj.weight", "i u"},
                {"gamma_last", "norm_f.weight", "i"},
                {"output_weight", "lm_head.weight", "v i"}},
       .others = {}},
      {.family = "opt",
       .prefix = "model.",
       .rows = {{"token_table", "decoder.embed_tokens.weight", "v i"},
                {"position_table", "decoder.embed_positions.weight", "2<j i"},
                {"gamma1", "decoder.layers.#.self_attn_layer_norm.weight", "i"},
                {"beta1", "decoder.layers.#.self_attn_layer_norm.bias", "i"},
                {"wq", "decoder.layers.#.self_attn.q_proj.weight", "hp i"},
                {"bq", "decoder.layers.#.self_attn.q_proj.bias", "hp"},
                {"wk", "decoder.layers.#.self_attn.k_proj.weight", "hp i"},
                {"bk", "decoder.layers.#.self_attn.k_proj.bias", "hp"},
                {"wv", "decoder.layers.#.self_attn.v_proj.weight", "hw i"},
                {"bv", "decoder.layers.#.self_attn.v_proj.bias", "hw"},
                {"wo", "decoder.layers.#.self_attn.out_proj.weight", "i hw"},
                {"bo", "decoder.layers.#.self_attn.out_proj.bias", "i"},
                {"gamma2", "decoder.layers.#.final_layer_norm.weight", "i"},
                {"beta2", "decoder.layers.#.final_layer_norm.bias", "i"},
                {"w1", "decoder.layers.#.fc1.weight", "u i"},
                {"b1", "decoder.layers.#.fc1.bias", "u"},
                {"w2", "decoder.layers.#.fc2.weight", "i u"},
                {"b2", "decoder.layers.#.fc2.bias", "i"},
                {"gamma_last", "decoder.final_layer_norm.weight", "i"},
                {"beta_last", "decoder.final_layer_norm.bias", "i"},
                {"output_weight", "lm_head.weight", "v i"}},
       .others = {}},
      {.family = "llama",
       .prefix = "model.",
       .rows = rowsOfLlama(0),
       .others = {"layers.#.self_attn.rotary_emb.inv_freq"}},
      // Its norms multiply with 1 + w.
      {.family = "gemma",
       .prefix = "model.",
       .rows = rowsOfLlama(1),
       .others = {"layers.#.self_attn.rotary_emb.inv_freq"}}};
  return all;
}

const Names *namesOf(std::string_view family) {
  const auto found = std::ranges::find(allNames(), family, &Names::family);
  return found == allNames().end() ? nullptr : &*found;
}

/// "h.12.ln_1.weight" as "h.#.ln_1.weight".
std::string withoutNumber(std::string_view name) {
  std::string result;
  for (size_t at = 0; at < name.size();) {
    size_t end = at;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
    const bool isNumber =
        end > at && end < name.size() && name[end] == '.' && (at == 0 || name[at - 1] == '.');
    if (isNumber) result += '#', at = end;
    else result += name[at++];
  }
  return result;
}

}  // namespace

std::optional<WeightSource> weightSource(std::string_view names, std::string_view parameter,
                                         int64_t layer) {
  const Names *known = namesOf(names);
  if (!known) return std::nullopt;
  const std::string bare = layer > 0 ? withoutLayers(parameter) : std::string(parameter);
  for (const Row &row : known->rows) {
    const size_t number = row.name.find('#');
    if (row.parameter != bare || (number != row.name.npos) != (layer > 0)) continue;
    std::string name(row.name);
    if (layer > 0) name.replace(number, 1, std::to_string(layer - 1));
    return WeightSource{
        .name = std::move(name), .dimensions = std::string(row.dimensions), .plus = row.plus};
  }
  return std::nullopt;
}

std::string withoutModelPrefix(std::string_view names, std::string_view name) {
  const Names *known = namesOf(names);
  if (known && name.starts_with(known->prefix)) name.remove_prefix(known->prefix.size());
  return std::string(name);
}

bool isWeightName(std::string_view names, std::string_view name) {
  const Names *known = namesOf(names);
  if (!known) return false;
  const std::string general = withoutNumber(name);
  // A number that a table spells out is of no layer: ALBERT's one group of layers.
  const auto isKnown = [&](const Row &row) { return row.name == general || row.name == name; };
  return std::ranges::any_of(known->rows, isKnown) ||
         std::ranges::any_of(known->others, [&](std::string_view other) {
           return other.ends_with('.') ? general.starts_with(other) : general == other;
         });
}

std::string nearestWeightName(std::string_view names, std::string_view name) {
  const Names *known = namesOf(names);
  if (!known) return "";
  const std::string general = withoutNumber(name);
  std::vector<std::string> all;
  for (const Row &row : known->rows) all.emplace_back(row.name);
  for (const std::string_view other : known->others)
    if (!other.ends_with('.')) all.emplace_back(other);
  std::string near = nearest(general, all);
  if (const size_t number = near.find('#'), at = general.find('#');
      number != near.npos && at != general.npos) {
    const size_t end = name.find('.', at);
    near.replace(number, 1, name.substr(at, end - at));
  }
  return near;
}

}  // namespace weft::models
