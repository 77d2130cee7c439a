// One reader a family of config.json files, chosen by `model_type` in a table. A reader asks for every key that decides
// the mathematics of one layer; the families' harmless keys are listed once below. Meanings are those of the published
// model documentation of each family.
#include "models/ConfigJson.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "models/ConfigReader.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::models {
namespace {

/// Probabilities of dropout in training: the layer that is built is the one of inference.
// clang-format off
const std::set<std::string> dropoutKeys = {
    "activation_dropout", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "classifier_dropout", "dropout",
    "embd_pdrop", "hidden_dropout_prob", "qa_dropout", "resid_pdrop", "seq_classif_dropout", "summary_first_dropout"};
// clang-format on

/// Sizes outside a layer, token ids, precision and bookkeeping do not touch it.
// clang-format off
const std::set<std::string> harmlessKeys = {
    "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "architectures", "bos_token_id",
    "chunk_size_feed_forward", "directionality", "do_sample", "dtype", "eos_token_id", "finetuning_task",
    "gradient_checkpointing", "id2label", "initializer_range", "is_decoder", "label2id", "max_length",
    "max_position_embeddings", "max_window_layers", "n_ctx", "n_layer", "n_layers", "n_positions",
    "num_hidden_layers", "output_attentions", "output_hidden_states", "output_past", "pad_token_id",
    "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
    "predict_special_tokens", "pretraining_tp", "problem_type", "reorder_and_upcast_attn", "return_dict",
    "sinusoidal_pos_embds", "summary_activation", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "tie_weights_", "tie_word_embeddings", "tokenizer_class", "torch_dtype",
    "transformers_version", "type_vocab_size", "use_cache", "vocab_size"};
// clang-format on

/// Settings of related families that change attention, residuals or the feed-forward network. No family read here has
/// them, so a file that sets one describes something else.
// clang-format off
constexpr std::array foreignKeys = {
    "alibi", "attention_multiplier", "attention_window", "attn_logit_softcapping", "clip_qkv", "num_experts",
    "num_local_experts", "pruned_heads", "qk_layernorm", "query_pre_attn_scalar", "residual_multiplier",
    "sparse_attention", "use_parallel_residual", "use_qk_norm"};
// clang-format on

Activation activation(ConfigReader &reader, const Keys &keys, const std::string &absent) {
  static const std::map<std::string, Activation> known = {
      {"gelu", Activation::gelu},         {"gelu_fast", Activation::geluTanh},
      {"gelu_new", Activation::geluTanh}, {"gelu_pytorch_tanh", Activation::geluTanh},
      {"relu", Activation::relu},         {"silu", Activation::silu},
      {"swish", Activation::silu}};
  const std::string name = reader.text(keys, absent);
  if (const auto at = known.find(name); at != known.end()) return at->second;
  std::vector<std::string> names;
  for (const auto &[spelling, value] : known) names.push_back(spelling);
  throw Error::unsupported("{}: key '{}' = \"{}\": unknown activation{}", reader.where(), keys.front(), name,
                           nearestAndKnown(name, names));
}

void refuseCommon(ConfigReader &reader) {
  reader.refuseFlag("add_cross_attention", "cross attention is not supported");
  reader.refuseFlag("is_encoder_decoder", "encoder-decoder models are not supported");
  reader.refuseValue("quantization_config", "quantized weights are not supported; supported are f32, f16 and bf16");
  for (const char *key : foreignKeys)
    reader.refuseValue(key, "changes the mathematics of a layer and is not supported");
}

void requireMultiple(const ConfigReader &reader, const std::string &key, int64_t value, const std::string &divisorKey,
                     int64_t divisor) {
  if (value % divisor != 0)
    throw reader.error(ErrorKind::badInput, key, fmt::format("is not divisible by '{}' = {}", divisorKey, divisor));
}

LayerSpecification readBert(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads"});
  requireMultiple(reader, "hidden_size", hidden, "num_attention_heads", heads);
  const std::string position = reader.text({"position_embedding_type"}, "absolute");
  if (position != "absolute")
    throw reader.error(ErrorKind::unsupported, "position_embedding_type",
                       "changes the attention scores; supported is \"absolute\"");
  return {
      .family = Family::encoder,
      .dims = {{"b", 8}, {"j", 512}, {"h", heads}, {"i", hidden}, {"u", reader.requiredInteger({"intermediate_size"})}},
      .activation = activation(reader, {"hidden_act"}, "gelu"),
      .epsilon = reader.positive({"layer_norm_eps"}, 1e-12),
      .causal = reader.flag("is_decoder", false)};
}

LayerSpecification readDistilBert(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"dim", "hidden_size"});
  const int64_t heads = reader.requiredInteger({"n_heads", "num_attention_heads"});
  requireMultiple(reader, "dim", hidden, "n_heads", heads);
  return {.family = Family::encoder,
          .dims = {{"b", 8}, {"j", 512}, {"h", heads}, {"i", hidden}, {"u", reader.requiredInteger({"hidden_dim"})}},
          .activation = activation(reader, {"activation"}, "gelu"),
          .epsilon = 1e-12};
}

LayerSpecification readGpt2(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"n_embd", "hidden_size"});
  const int64_t heads = reader.requiredInteger({"n_head", "num_attention_heads"});
  requireMultiple(reader, "n_embd", hidden, "n_head", heads);
  reader.refuseFlag("scale_attn_by_inverse_layer_idx", "a scale that depends on the layer is not supported");
  return {.family = Family::decoder,
          .dims = {{"b", 1},
                   {"j", 1024},
                   {"h", heads},
                   {"i", hidden},
                   {"u", reader.integer({"n_inner"}).value_or(4 * hidden)}},
          .activation = activation(reader, {"activation_function"}, "gelu_new"),
          .epsilon = reader.positive({"layer_norm_epsilon"}, 1e-5),
          .causal = true,
          .scaleScores = reader.flag("scale_attn_weights", true)};
}

/// Newer files put the rotary settings into one object; only the plain kind is the mathematics of weft.rotary.
double rotaryBase(ConfigReader &reader) {
  reader.refuseValue("rope_scaling", "scaled rotary positions are not supported; supported is null");
  if (reader.positive({"partial_rotary_factor"}, 1) != 1)
    throw reader.error(ErrorKind::unsupported, "partial_rotary_factor", "only 1 is supported");
  const double base = reader.positive({"rope_theta"}, 10000);
  const nlohmann::json *parameters = reader.find("rope_parameters");
  if (!parameters) return base;
  if (!parameters->is_object()) throw reader.error(ErrorKind::badInput, "rope_parameters", "must be an object");
  ConfigReader inner(parameters->dump(), reader.where() + ": rope_parameters");
  if (inner.text({"rope_type", "type"}, "default") != "default")
    throw reader.error(ErrorKind::unsupported, "rope_parameters", "only the rope_type \"default\" is supported");
  const double innerBase = inner.positive({"rope_theta"}, base);
  const std::vector<std::string> others = inner.unread();
  if (!others.empty())
    throw reader.error(ErrorKind::unsupported, "rope_parameters",
                       fmt::format("unsupported: {}", fmt::join(others, ", ")));
  return innerBase;
}

/// Per-layer kinds of attention: one layer is compiled, so all must be the same plain kind.
void refuseMixedLayers(ConfigReader &reader) {
  const nlohmann::json *kinds = reader.find("layer_types");
  if (!kinds) return;
  for (const nlohmann::json &kind : *kinds)
    if (kind != "full_attention")
      throw reader.error(ErrorKind::unsupported, "layer_types", "only \"full_attention\" layers are supported");
}

LayerSpecification readLlamaLike(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads"});
  const int64_t groups = reader.integer({"num_key_value_heads"}).value_or(heads);
  requireMultiple(reader, "num_attention_heads", heads, "num_key_value_heads", groups);
  const auto headDim = reader.integer({"head_dim"});
  if (!headDim) requireMultiple(reader, "hidden_size", hidden, "num_attention_heads", heads);
  refuseMixedLayers(reader);
  const bool bias = reader.flag("attention_bias", false);
  return {.family = Family::llama,
          .dims = {{"b", 1},
                   {"j", 2048},
                   {"h", heads},
                   {"g", groups},
                   {"p", headDim.value_or(hidden / heads)},
                   {"i", hidden},
                   {"u", reader.requiredInteger({"intermediate_size"})}},
          .activation = activation(reader, {"hidden_act"}, "silu"),
          .epsilon = reader.positive({"rms_norm_eps"}, 1e-6),
          .projectionBias = bias,
          .outputBias = bias,
          .feedForwardBias = reader.flag("mlp_bias", false),
          .causal = true,
          .rotaryBase = rotaryBase(reader)};
}

LayerSpecification readLlama(ConfigReader &reader) {
  reader.refuseValue("sliding_window", "a llama layer attends to all earlier keys; windows belong to model_type \"mistral\"");
  return readLlamaLike(reader);
}

/// Llama with a sliding window; no biases.
LayerSpecification readMistral(ConfigReader &reader) {
  const auto window = reader.integer({"sliding_window"});
  LayerSpecification specification = readLlamaLike(reader);
  specification.window = window;
  return specification;
}

/// Llama with biases on q, k and v alone.
LayerSpecification readQwen2(ConfigReader &reader) {
  reader.refuseFlag("use_sliding_window", "windows in some layers only are not supported");
  reader.integer({"sliding_window"});
  LayerSpecification specification = readLlamaLike(reader);
  specification.projectionBias = true;
  return specification;
}

using FamilyReader = LayerSpecification (*)(ConfigReader &);
const std::map<std::string, FamilyReader> &familyReaders() {
  static const std::map<std::string, FamilyReader> readers = {
      {"bert", readBert},   {"camembert", readBert}, {"distilbert", readDistilBert},
      {"gpt2", readGpt2},   {"llama", readLlama},    {"mistral", readMistral},
      {"qwen2", readQwen2}, {"roberta", readBert},   {"xlm-roberta", readBert}};
  return readers;
}

/// Families whose positions are rows of a learned table, and the key that says how many. Rotary positions have no end.
Keys positionKeys(Family family) {
  if (family == Family::encoder) return {"max_position_embeddings"};
  if (family == Family::decoder) return {"n_positions", "max_position_embeddings"};
  return {};
}

/// Remembers the limit and keeps the default extent of j below it.
void readPositions(ConfigReader &reader, ConfigDescription &description) {
  const Keys keys = positionKeys(description.specification.family);
  const auto count = keys.empty() ? std::nullopt : reader.integer(keys);
  if (!count) return;
  description.positionsKey = reader.find(keys.front()) ? keys.front() : keys.back();
  description.positions = *count;
  int64_t &steps = description.specification.dims["j"];
  steps = std::min(steps, *count);
}

void sortUnread(const ConfigReader &reader, ConfigDescription &description) {
  for (const std::string &key : reader.unread())
    (harmlessKeys.count(key) ? description.ignoredKeys
                             : dropoutKeys.count(key) ? description.dropoutKeys : description.unknownKeys)
        .push_back(key);
}

/// "bert-large" of models/bert-large.json; the model type where the file is plainly called config.json.
std::string layerName(const std::string &where, const std::string &modelType) {
  const std::string stem = std::filesystem::path(where).stem().string();
  return stem.empty() || stem == "config" ? modelType : stem;
}

}  // namespace

std::vector<std::string> supportedModelTypes() {
  std::vector<std::string> names;
  for (const auto &[name, reader] : familyReaders()) names.push_back(name);
  return names;
}

ConfigDescription parseConfig(std::string_view text, const std::string &where) {
  ConfigReader reader(text, where);
  const std::string modelType = reader.requiredText("model_type");
  const auto family = familyReaders().find(modelType);
  if (family == familyReaders().end())
    throw Error::unsupported("{}: key 'model_type' = \"{}\": unsupported model{}", where, modelType,
                             nearestAndKnown(modelType, supportedModelTypes()));
  refuseCommon(reader);
  ConfigDescription description;
  description.specification = family->second(reader);
  description.specification.name = layerName(where, modelType);
  readPositions(reader, description);
  sortUnread(reader, description);
  return description;
}

void checkPositions(const ConfigDescription &description, const Dims &dims) {
  if (description.positionsKey.empty()) return;
  for (const char *axis : {"j", "k"})
    if (dims.at(axis) > description.positions)
      throw Error::badInput("{}: dimension {}={} is larger than key '{}' = {}: later positions have no embedding",
                            description.specification.name, axis, dims.at(axis), description.positionsKey,
                            description.positions);
}

ConfigDescription readConfig(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || std::filesystem::is_directory(path) || !(text << file.rdbuf()))
    throw Error::badInput("{}: cannot be read (or is empty)", path);
  return parseConfig(text.str(), path);
}

}  // namespace weft::models
