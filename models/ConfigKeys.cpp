// The lists follow what the `transformers` library writes for the families that ConfigJson.cpp
// reads: settings of every model, of text generation, of weights' initialization, of embeddings,
// heads and poolers, which lie outside a layer.
#include "models/ConfigKeys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace weft::models {
namespace {

using nlohmann::json;

const std::set<std::string> dropoutKeys = {"activation_dropout",
                                           "attention_dropout",
                                           "attention_probs_dropout_prob",
                                           "attn_pdrop",
                                           "dropout",
                                           "dropout_rate",
                                           "emb_pdrop",
                                           "embd_pdrop",
                                           "embed_dropout",
                                           "hidden_dropout",
                                           "hidden_dropout_prob",
                                           "layerdrop",
                                           "resid_dropout",
                                           "resid_pdrop"};

const std::set<std::string> headDropoutKeys = {"classifier_dropout", "classifier_dropout_prob",
                                               "qa_dropout", "seq_classif_dropout",
                                               "summary_first_dropout"};

const std::set<std::string> neutralKeys = {
    // what the file is
    "_commit_hash", "_from_model_config", "_name_or_path", "finetuning_task", "name_or_path",
    "prefix", "task_specific_params", "tokenizer_class", "transformers_version",
    "transformers.js_config",
    // how it is computed: results are the same
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "_flash_attn_2_enabled", "attn_implementation", "chunk_size_feed_forward",
    "gradient_checkpointing", "output_attentions", "output_hidden_states", "output_past",
    "pretraining_tp", "return_dict", "tf_legacy_loss", "torchscript", "use_cache",
    // tokens
    "bos_token_id", "cls_token_id", "decoder_start_token_id", "eos_token_id", "mask_token_id",
    "pad_token_id", "sep_token_id", "unk_token_id",
    // generation of text
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "output_scores",
    "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens",
    "temperature", "top_k", "top_p", "typical_p",
    // initial weights
    "init_std", "initializer_factor", "initializer_range",
    // the number of layers; embeddings before them, heads and poolers behind
    "id2label", "label2id", "max_position_embeddings", "n_ctx", "n_layer", "n_layers",
    "n_positions", "num_hidden_layers", "num_labels", "pooler_act", "pooler_fc_size",
    "pooler_hidden_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type", "directionality", "predict_special_tokens",
    "problem_type", "sinusoidal_pos_embds", "summary_activation", "summary_proj_to_labels",
    "summary_type", "summary_use_proj", "tie_encoder_decoder", "tie_weights_",
    "tie_word_embeddings", "type_vocab_size", "vocab_size"};

constexpr const char *architecturesKey = "architectures";

/// Keys that are bookkeeping with the values of isDoubtful() excepted, and what these mean.
const std::map<std::string, std::string> doubtfulKeys = {
    {architecturesKey, "names a class whose layer may be another than that of model_type"},
    {"reorder_and_upcast_attn",
     "computes the scores in f32, which weft does within a kernel alone: results of 16-bit "
     "elements differ"}};

/// Of one model type: in others they would be something else.
const std::map<std::string, std::set<std::string>> neutralKeysOf = {
    {"albert",
     {"down_scale_factor", "embedding_size", "gap_size", "net_structure_type",
      "num_memory_blocks"}},
    {"bloom",
     {"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
      "seq_length", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact"}},
    {"big_bird", {"rescale_embeddings"}},
    {"deberta", {"legacy", "padding_idx", "pooler_dropout", "pooler_hidden_act"}},
    {"gpt_neo", {"num_layers"}},
    {"opt", {"output_projection"}},
    {"phi3", {"auto_map", "original_max_position_embeddings"}},
    {"qwen3", {"max_window_layers", "sliding_window"}},
    {"longformer", {"ignore_attention_mask", "onnx_export"}},
    {"mpt",
     {"embedding_fraction", "init_config", "init_device", "learned_pos_emb", "max_seq_len",
      "tokenizer_name", "verbose"}},
    {"t5", {"is_encoder_decoder", "num_decoder_layers", "num_layers"}},
    {"qwen2",
     {"max_window_layers", "sliding_window"}}};  // both of Qwen wait for use_sliding_window

/// How the classes of a model type begin; each goes on with one of architectureHeads.
const std::map<std::string, std::vector<std::string>> architecturePrefixes = {
    {"albert", {"Albert"}},
    {"bert", {"Bert"}},
    {"big_bird", {"BigBird"}},
    {"bloom", {"Bloom"}},
    {"camembert", {"Camembert"}},
    {"deberta", {"Deberta"}},
    {"distilbert", {"DistilBert"}},
    {"gemma", {"Gemma"}},
    {"gpt2", {"GPT2"}},
    {"gpt_neo", {"GPTNeo"}},
    {"llama", {"Llama", "LLaMA"}},
    {"longformer", {"Longformer"}},
    {"mistral", {"Mistral"}},
    {"mpt", {"MPT", "Mpt"}},
    {"opt", {"OPT"}},
    {"phi3", {"Phi3"}},
    {"qwen2", {"Qwen2"}},
    {"qwen3", {"Qwen3"}},
    {"roberta", {"Roberta"}},
    {"t5", {"T5"}},
    {"xlm-roberta", {"XLMRoberta"}}};

const std::set<std::string> architectureHeads = {"DoubleHeadsModel",
                                                 "EncoderModel",
                                                 "ForCausalLM",
                                                 "ForConditionalGeneration",
                                                 "ForMaskedLM",
                                                 "ForMultipleChoice",
                                                 "ForNextSentencePrediction",
                                                 "ForPreTraining",
                                                 "ForQuestionAnswering",
                                                 "ForSequenceClassification",
                                                 "ForTokenClassification",
                                                 "LMHeadModel",
                                                 "Model"};

const std::vector<json> layerNorm = {"layer_norm", "layernorm", "LayerNorm"},
                        rmsNorm = {"rms_norm", "rmsnorm", "RMSNorm"};

struct SettledKey {
  std::vector<json> encoder, decoder, llama;  ///< values that say what the family has anyway
};

/// Beside the values here, null, an empty list and an empty object settle every key, and false
/// those without values.
const std::map<std::string, SettledKey> settledKeys = {
    {"alibi", {}},
    {"attention_multiplier", {}},
    {"attention_window", {}},
    {"attn_logit_softcapping", {}},
    {"clip_qkv", {}},
    {"cross_attention_hidden_size", {}},
    {"embedding_multiplier", {{1, 1.0}, {1, 1.0}, {1, 1.0}}},
    {"gated_mlp", {{false}, {false}, {true}}},
    {"is_causal", {{false}, {true}, {true}}},
    {"is_decoder",
     {{false}, {false, true}, {false, true}}},  // causal anyway; an encoder's reader asks for it
    {"multi_query", {}},
    {"norm_first", {{false}, {true}, {true}}},
    {"norm_type", {layerNorm, layerNorm, rmsNorm}},
    {"normalization_type", {layerNorm, layerNorm, rmsNorm}},
    {"num_experts", {{0}, {0}, {0}}},
    {"num_local_experts", {{0}, {0}, {0}}},
    {"parallel_attn", {}},
    {"position_embedding_type", {{"absolute"}, {"absolute"}, {"rope", "rotary"}}},
    {"pruned_heads", {}},
    {"qk_layernorm", {}},
    {"query_pre_attn_scalar", {}},
    {"residual_multiplier", {{1, 1.0}, {1, 1.0}, {1, 1.0}}},
    {"sliding_window", {}},
    {"sparse_attention", {}},
    {"use_bfloat16", {}},
    {"use_gated_mlp", {{false}, {false}, {true}}},
    {"use_mrope", {}},
    {"use_parallel_residual", {}},
    {"use_qk_norm", {}},
    {"use_sliding_window", {}}};

const std::vector<json> &ofFamily(const SettledKey &key, Family family) {
  return family == Family::llama     ? key.llama
         : family == Family::decoder ? key.decoder
                                     : key.encoder;
}

/// "TF" and "Flax" before the name are the same model in another framework.
bool isArchitectureOf(const json &value, const std::string &modelType) {
  const auto prefixes = architecturePrefixes.find(modelType);
  if (!value.is_string() || prefixes == architecturePrefixes.end()) return false;
  const std::string name = value.get<std::string>();
  for (const std::string &prefix : prefixes->second)
    for (const std::string &framework : {std::string(), std::string("TF"), std::string("Flax")})
      if (const std::string begin = framework + prefix;
          name.starts_with(begin) && architectureHeads.contains(name.substr(begin.size())))
        return true;
  return false;
}

/// Of keys that are allowed on request: whether the value may stand without.
bool isDoubtful(const std::string &key, const json &value, const std::string &modelType) {
  if (key != architecturesKey) return !value.is_null() && value != false;
  if (value.is_null()) return false;
  return !value.is_array() || !std::ranges::all_of(value, [&](const json &name) {
    return isArchitectureOf(name, modelType);
  });
}

bool isEmpty(const json &value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

}  // namespace

KeyMeaning meaningOf(const std::string &key, const json &value, const std::string &modelType,
                     Family family) {
  if (doubtfulKeys.contains(key))
    return isDoubtful(key, value, modelType) ? KeyMeaning::doubtful : KeyMeaning::neutral;
  if (neutralKeys.contains(key)) return KeyMeaning::neutral;
  if (dropoutKeys.contains(key)) return KeyMeaning::dropout;
  if (headDropoutKeys.contains(key)) return KeyMeaning::headDropout;
  const auto own = neutralKeysOf.find(modelType);
  if (own != neutralKeysOf.end() && own->second.contains(key)) return KeyMeaning::neutral;
  const auto found = settledKeys.find(key);
  if (found == settledKeys.end())
    return value.is_null() ? KeyMeaning::settled : KeyMeaning::unknown;
  if (isEmpty(value)) return KeyMeaning::settled;
  for (const json &settled : settledValues(key, family))
    if (value == settled) return KeyMeaning::settled;
  return KeyMeaning::changes;
}

std::string doubtAbout(const std::string &key, const std::string &modelType) {
  if (key != architecturesKey) return doubtfulKeys.at(key);
  const auto prefixes = architecturePrefixes.find(modelType);
  const std::string known =
      prefixes == architecturePrefixes.end()
          ? ""
          : fmt::format(" (as {0}Model, {0}For...)", prefixes->second.front());
  return fmt::format("{} \"{}\"{}", doubtfulKeys.at(key), modelType, known);
}

std::vector<json> settledValues(const std::string &key, Family family) {
  const auto found = settledKeys.find(key);
  if (found == settledKeys.end()) return {};
  const std::vector<json> &values = ofFamily(found->second, family);
  return values.empty() ? std::vector<json>{false} : values;
}

std::vector<std::string> listedKeys() {
  std::set<std::string> keys = neutralKeys;
  keys.insert(dropoutKeys.begin(), dropoutKeys.end());
  keys.insert(headDropoutKeys.begin(), headDropoutKeys.end());
  for (const auto &[key, doubt] : doubtfulKeys) keys.insert(key);
  for (const auto &[modelType, own] : neutralKeysOf) keys.insert(own.begin(), own.end());
  for (const auto &[key, values] : settledKeys) keys.insert(key);
  return {keys.begin(), keys.end()};
}

}  // namespace weft::models
