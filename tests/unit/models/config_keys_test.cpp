// Every key of config.json files as `transformers` writes them: changed, it changes the layer, is
// rejected by name, or stands among those that are listed as without influence. And keys that other
// models have never pass in silence.
#include "kernel/Error.h"
#include "models/ConfigJson.h"
#include "models/ConfigKeys.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>

using namespace weft;
using namespace weft::models;
using nlohmann::json;
using weft::test::nonEmpty;

namespace {

/// What files of every family may have beside their own settings.
const json everyModel = json::parse(R"({
  "_name_or_path": "some/model", "_attn_implementation_autoset": true, "add_cross_attention": false,
  "bad_words_ids": null, "begin_suppress_tokens": null, "bos_token_id": 1,
  "chunk_size_feed_forward": 0,
  "cross_attention_hidden_size": null, "decoder_start_token_id": null, "diversity_penalty": 0.0,
  "do_sample": false,
  "early_stopping": false, "encoder_no_repeat_ngram_size": 0, "eos_token_id": 2,
  "exponential_decay_length_penalty": null,
  "finetuning_task": null, "forced_bos_token_id": null, "forced_eos_token_id": null, "id2label":
  {"0": "A", "1": "B"},
  "is_decoder": false, "is_encoder_decoder": false, "label2id": {"A": 0, "B": 1}, "length_penalty":
  1.0, "max_length": 20,
  "min_length": 0, "no_repeat_ngram_size": 0, "num_beam_groups": 1, "num_beams": 1,
  "num_return_sequences": 1,
  "output_attentions": false, "output_hidden_states": false, "output_scores": false, "pad_token_id":
  0, "prefix": null,
  "problem_type": null, "pruned_heads": {}, "remove_invalid_values": false, "repetition_penalty":
  1.0, "return_dict": true,
  "return_dict_in_generate": false, "sep_token_id": null, "suppress_tokens": null,
  "task_specific_params": null,
  "temperature": 1.0, "tf_legacy_loss": false, "tie_encoder_decoder": false, "tie_word_embeddings":
  true,
  "tokenizer_class": null, "top_k": 50, "top_p": 1.0, "torch_dtype": "float16", "torchscript":
  false,
  "transformers_version": "4.46.0", "typical_p": 1.0, "use_bfloat16": false, "use_cache": true})");

const std::map<std::string, json> families = {
    {"bert",
     json::parse(
         R"({"model_type": "bert", "attention_probs_dropout_prob": 0.1, "classifier_dropout": null,
      "directionality": "bidi", "gradient_checkpointing": false, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1,
      "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps":
      1e-12,
      "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
      "pooler_fc_size": 768,
      "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
      "pooler_type": "first_token_transform", "position_embedding_type": "absolute",
      "type_vocab_size": 2,
      "vocab_size": 30522})")},
    {"bloom", json::parse(
                  R"({"model_type": "bloom", "apply_residual_connection_post_layernorm": false,
      "attention_dropout": 0.0, "attention_softmax_in_fp32": true, "bias_dropout_fusion": true,
      "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
      "masked_softmax_fusion": true, "n_embed": 1024, "n_inner": null, "n_layer": 24,
      "num_attention_heads": 16, "offset_alibi": 100, "pretraining_tp": 1, "seq_length": 2048,
      "skip_bias_add": true, "skip_bias_add_qkv": false, "slow_but_exact": false,
      "unk_token_id": 0, "vocab_size": 250880})")},
    {"big_bird",
     json::parse(
         R"({"model_type": "big_bird", "attention_probs_dropout_prob": 0.1, "attention_type":
      "block_sparse", "block_size": 64, "classifier_dropout": null, "gradient_checkpointing": false,
      "hidden_act": "gelu_new", "hidden_dropout_prob": 0.1, "hidden_size": 1024,
      "initializer_range": 0.02, "intermediate_size": 4096, "layer_norm_eps": 1e-12,
      "max_position_embeddings": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
      "num_random_blocks": 3, "position_embedding_type": "absolute", "rescale_embeddings": false,
      "sep_token_id": 66, "type_vocab_size": 2, "use_bias": true, "vocab_size": 50358})")},
    {"gpt_neo",
     json::parse(
         R"({"model_type": "gpt_neo", "activation_function": "gelu_new", "attention_dropout": 0,
      "attention_layers": ["global", "local", "global", "local"], "attention_types": [[["global",
      "local"], 2]], "classifier_dropout": 0.1, "embed_dropout": 0, "gradient_checkpointing": false,
      "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": null,
      "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048, "num_heads": 16,
      "num_layers": 24, "resid_dropout": 0, "summary_activation": null,
      "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
      "summary_use_proj": true, "vocab_size": 50257, "window_size": 256})")},
    {"longformer", json::parse(
                       R"({"model_type": "longformer", "attention_mode": "longformer",
      "attention_probs_dropout_prob": 0.1, "attention_window": [512, 512],
      "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "hidden_size": 1024, "ignore_attention_mask": false, "initializer_range": 0.02,
      "intermediate_size": 4096, "layer_norm_eps": 1e-05, "max_position_embeddings": 4098,
      "num_attention_heads": 16, "num_hidden_layers": 24, "onnx_export": false, "sep_token_id": 2,
      "type_vocab_size": 1, "vocab_size": 50265})")},
    {"mpt",
     json::parse(
         R"({"model_type": "mpt", "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl":
         "torch",
      "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
      "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null}, "d_model": 4096,
      "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {"name":
      "kaiming_normal_"}, "init_device": "cpu", "learned_pos_emb": true, "logit_scale": null,
      "max_seq_len": 2048, "n_heads": 32, "n_layers": 32, "no_bias": true, "norm_type":
      "low_precision_layernorm", "resid_pdrop": 0, "tokenizer_name": "EleutherAI/gpt-neox-20b",
      "verbose": 0, "vocab_size": 50432})")},
    {"t5",
     json::parse(
         R"({"model_type": "t5", "classifier_dropout": 0.0, "d_ff": 2048, "d_kv": 64, "d_model":
         512,
      "dense_act_fn": "relu", "dropout_rate": 0.1, "feed_forward_proj": "relu",
      "initializer_factor": 1.0, "is_encoder_decoder": true, "is_gated_act": false,
      "layer_norm_epsilon": 1e-06, "n_positions": 512, "num_decoder_layers": 6, "num_heads": 8,
      "num_layers": 6, "output_past": true, "relative_attention_max_distance": 128,
      "relative_attention_num_buckets": 32, "vocab_size": 32128})")},
    {"deberta",
     json::parse(
         R"({"model_type": "deberta", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
      "intermediate_size": 3072, "layer_norm_eps": 1e-07, "legacy": true,
      "max_position_embeddings": 512, "max_relative_positions": 256, "num_attention_heads": 12,
      "num_hidden_layers": 12, "padding_idx": 0, "pooler_dropout": 0, "pooler_hidden_act": "gelu",
      "pooler_hidden_size": 768, "pos_att_type": ["c2p", "p2c"], "position_biased_input": false,
      "relative_attention": true, "talking_head": false, "type_vocab_size": 0,
      "vocab_size": 50265})")},
    {"distilbert",
     json::parse(
         R"({"model_type": "distilbert", "activation": "gelu", "attention_dropout": 0.1, "dim": 768,
      "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
      "n_heads": 12,
      "n_layers": 6, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false,
      "tie_weights_": true,
      "vocab_size": 30522})")},
    {"gpt2", json::parse(
                 R"({"model_type": "gpt2", "activation_function": "gelu_new", "attn_pdrop": 0.1,
         "embd_pdrop": 0.1,
      "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 1024, "n_embd": 768,
      "n_head": 12, "n_inner": null,
      "n_layer": 12, "n_positions": 1024, "reorder_and_upcast_attn": false, "resid_pdrop": 0.1,
      "scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true, "summary_activation":
      null,
      "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
      "summary_use_proj": true,
      "vocab_size": 50257})")},
    {"llama",
     json::parse(
         R"({"model_type": "llama", "attention_bias": false, "attention_dropout": 0.0, "head_dim":
         128,
      "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size":
      14336,
      "max_position_embeddings": 8192, "mlp_bias": false, "num_attention_heads": 32,
      "num_hidden_layers": 32,
      "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
      "rope_theta": 500000.0,
      "vocab_size": 128256})")},
    {"mistral",
     json::parse(
         R"({"model_type": "mistral", "attention_dropout": 0.0, "head_dim": 128, "hidden_act":
         "silu",
      "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
      "max_position_embeddings": 32768,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps":
      1e-05,
      "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 32000})")},
    {"qwen2",
     json::parse(
         R"({"model_type": "qwen2", "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size":
         3584,
      "initializer_range": 0.02, "intermediate_size": 18944, "layer_types": ["full_attention",
      "full_attention"],
      "max_position_embeddings": 32768, "max_window_layers": 28, "num_attention_heads": 28,
      "num_hidden_layers": 28,
      "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_type": "default",
      "rope_theta": 1000000.0},
      "sliding_window": 131072, "use_mrope": false, "use_sliding_window": false, "vocab_size":
      152064})")}};

json fileOf(const std::string &family) {
  static const std::map<std::string, const char *> classes = {
      {"bert", "BertForMaskedLM"},          {"distilbert", "DistilBertModel"},
      {"bloom", "BloomForCausalLM"},        {"mpt", "MPTForCausalLM"},
      {"deberta", "DebertaForMaskedLM"},    {"big_bird", "BigBirdForMaskedLM"},
      {"gpt_neo", "GPTNeoForCausalLM"},     {"longformer", "LongformerModel"},
      {"t5", "T5ForConditionalGeneration"}, {"gpt2", "GPT2LMHeadModel"},
      {"llama", "LlamaForCausalLM"},        {"mistral", "MistralForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"}};
  json file = everyModel;
  file["architectures"] = {classes.at(family)};
  file.update(families.at(family));
  return file;
}

/// The same, or of a family without a file here its sizes alone.
json anyFileOf(const std::string &family) {
  if (families.contains(family)) return fileOf(family);
  return {{"model_type", family},
          {"hidden_size", 64},
          {"num_attention_heads", 4},
          {family == "opt" ? "ffn_dim" : "intermediate_size", 128}};
}

/// Other values of the same kind, legal ones among them, and one of another kind.
std::vector<json> mutations(const std::string &key, const json &value) {
  if (value.is_boolean()) return {!value.get<bool>(), "other"};
  if (value.is_number_integer())
    return {2 * value.get<int64_t>() + 2, value.get<int64_t>() + 1, 0, "other"};
  if (value.is_number()) return {value.get<double>() / 2 + 0.125, "other"};
  if (value.is_string())
    return {key.ends_with("dtype")                                           ? "bfloat16"
            : key.starts_with("hidden_act") || key.starts_with("activation") ? "relu"
                                                                             : "other",
            3};
  if (value.is_null()) return {true, 64, "other", {{"factor", 2.0}, {"rope_type", "yarn"}}};
  return {{{"other", 1}}, {"other"}};
}

bool isListed(const ConfigDescription &read, const std::string &key) {
  return std::ranges::count(read.ignoredKeys, key) > 0;
}

/// What a file says of a layer, without the lists and without the model around it.
bool isSameLayer(ConfigDescription a, ConfigDescription b) {
  a.specification.model = b.specification.model = {};
  return a.specification == b.specification && a.dropout == b.dropout &&
         a.otherDropoutKeys == b.otherDropoutKeys && a.elementTypeName == b.elementTypeName &&
         a.positions == b.positions && a.notes == b.notes;
}

/// How a file that differs in one key is taken: "same" if the key is listed and nothing changed,
/// "changed", "rejected", or what is wrong with it.
std::string outcome(const json &file, const ConfigDescription &before, const std::string &key) {
  try {
    const ConfigDescription after = parseConfig(file.dump(), "config.json");
    const bool same = isSameLayer(before, after);
    if (isListed(after, key))
      return same ? "same" : "listed as without influence, and changes the layer";
    if (!same) return "changed";
    const bool isSameValue = after.dropout == before.dropout && file.at(key) == 0;
    return isSameValue ? "same" : "read, and without influence";
  } catch (const Error &error) {
    return std::string(error.what()).find("'" + key + "'") != std::string::npos ? "rejected"
                                                                                : error.what();
  }
}

}  // namespace

TEST_CASE("files of all families as they are written are read, and no key is left over") {
  REQUIRE(families.size() == 13);
  for (const auto &[name, own] : families) {
    INFO(name);
    const json file = fileOf(name);
    const ConfigDescription read = parseConfig(file.dump(), "config.json");
    CHECK(read.allowedKeys.empty());
    CHECK(read.elementType == DType::f16);
    CHECK(read.ignoredKeys.size() > 40);
  }
}

TEST_CASE("each key that is changed changes the layer, is rejected by name, or is listed") {
  size_t changed = 0, rejected = 0, same = 0;
  for (const auto &[name, own] : families) {
    const json file = fileOf(name);
    const ConfigDescription before = parseConfig(file.dump(), "config.json");
    for (const auto &[key, value] : nonEmpty(file.items()))
      for (const json &other : nonEmpty(mutations(key, value))) {
        json mutated = file;
        mutated[key] = other;
        const std::string found = outcome(mutated, before, key);
        INFO(name << ": " << key << " = " << other.dump() << ": " << found);
        CHECK((found == "same" || found == "changed" || found == "rejected"));
        changed += found == "changed", rejected += found == "rejected", same += found == "same";
      }
  }
  CHECK(changed > 40);
  CHECK(rejected > 100);
  CHECK(same > 300);
}

TEST_CASE("settings of the mathematics of a layer are never listed as without influence") {
  const std::map<std::string, std::set<std::string>> mathematics = {
      {"bert",
       {"hidden_act", "hidden_size", "intermediate_size", "is_decoder", "layer_norm_eps",
        "num_attention_heads", "position_embedding_type"}},
      {"bloom",
       {"apply_residual_connection_post_layernorm", "layer_norm_epsilon", "n_embed", "n_inner",
        "num_attention_heads"}},
      {"big_bird",
       {"attention_type", "block_size", "hidden_act", "hidden_size", "intermediate_size",
        "is_decoder", "layer_norm_eps", "num_attention_heads", "num_random_blocks", "use_bias"}},
      {"gpt_neo",
       {"activation_function", "attention_layers", "attention_types", "hidden_size",
        "intermediate_size", "layer_norm_epsilon", "num_heads", "window_size"}},
      {"longformer",
       {"attention_mode", "attention_window", "hidden_act", "hidden_size", "intermediate_size",
        "is_decoder", "layer_norm_eps", "num_attention_heads"}},
      {"mpt", {"attn_config", "d_model", "expansion_ratio", "n_heads", "no_bias"}},
      {"t5",
       {"d_ff", "d_kv", "d_model", "feed_forward_proj", "is_decoder", "layer_norm_epsilon",
        "num_heads", "relative_attention_max_distance", "relative_attention_num_buckets"}},
      {"deberta",
       {"hidden_act", "hidden_size", "intermediate_size", "layer_norm_eps",
        "max_relative_positions", "num_attention_heads", "pos_att_type", "relative_attention",
        "talking_head"}},
      {"distilbert", {"activation", "dim", "hidden_dim", "n_heads", "is_decoder"}},
      {"gpt2",
       {"activation_function", "layer_norm_epsilon", "n_embd", "n_head", "n_inner",
        "scale_attn_by_inverse_layer_idx", "scale_attn_weights"}},
      {"llama",
       {"attention_bias", "head_dim", "hidden_act", "hidden_size", "intermediate_size", "mlp_bias",
        "num_attention_heads", "num_key_value_heads", "rms_norm_eps", "rope_scaling",
        "rope_theta"}},
      {"mistral",
       {"head_dim", "hidden_act", "num_key_value_heads", "rms_norm_eps", "rope_theta",
        "sliding_window"}},
      {"qwen2",
       {"hidden_act", "layer_types", "num_key_value_heads", "rms_norm_eps", "rope_parameters",
        "use_mrope", "use_sliding_window"}}};
  REQUIRE(mathematics.size() == families.size());
  for (const auto &[name, keys] : mathematics) {
    const json file = fileOf(name);
    const ConfigDescription before = parseConfig(file.dump(), "config.json");
    for (std::string key : keys) {
      REQUIRE(file.contains(key));
      for (const json &other : nonEmpty(mutations(key, file[key]))) {
        json mutated = file;
        mutated[key] = other;
        INFO(name << ": " << key << " = " << other.dump());
        CHECK_THAT(outcome(mutated, before, key),
                   Catch::Equals("changed") || Catch::Equals("rejected"));
      }
    }
  }
}

TEST_CASE(
    "what other models set is rejected by name in every family, or is what the family has anyway") {
  const std::vector<std::pair<std::string, json>> foreign = {
      {"norm_type", "rms"},
      {"use_gated_mlp", "yes"},
      {"alibi", true},
      {"attn_logit_softcapping", 50.0},
      {"clip_qkv", 8},
      {"query_pre_attn_scalar", 256},
      {"residual_multiplier", 0.22},
      {"use_qk_norm", true},
      {"qk_layernorm", true},
      {"num_local_experts", 8},
      {"parallel_attn", true},
      {"use_parallel_residual", true},
      {"rotary_pct", 0.25},
      {"attention_multiplier", 0.0078125},
      {"pruned_heads", {{"1", {2}}}},
      {"sparse_attention", {{"block", 16}}},
      {"auto_map", {{"AutoModel", "modeling_other.OtherModel"}}},
      {"logit_scale", 2},
      {"use_mrope", true},
      {"frobnicate", 0}};
  for (const auto &[name, own] : families) {
    const ConfigDescription before = parseConfig(fileOf(name).dump(), "config.json");
    for (const auto &[key, value] : foreign) {
      json file = fileOf(name);
      file[key] = value;
      INFO(name << ": " << key << " = " << value.dump());
      CHECK(outcome(file, before, key) == "rejected");
    }
  }
  const auto with = [](const std::string &family, const std::string &key, const json &value) {
    json file = fileOf(family);
    file[key] = value;
    return outcome(file, parseConfig(fileOf(family).dump(), "config.json"), key);
  };
  CHECK(with("bert", "norm_type", "layer_norm") == "same");
  CHECK(with("bert", "norm_type", "rms_norm") == "rejected");
  CHECK(with("llama", "norm_type", "rms_norm") == "same");
  CHECK(with("llama", "norm_type", "layer_norm") == "rejected");
  CHECK(with("bert", "use_gated_mlp", false) == "same");
  CHECK(with("bert", "use_gated_mlp", true) == "rejected");
  CHECK(with("llama", "use_gated_mlp", true) == "same");
  CHECK(with("llama", "use_gated_mlp", false) == "rejected");
  CHECK(with("llama", "sliding_window", 16) == "rejected");
  CHECK(with("bert", "sliding_window", 16) == "rejected");
  CHECK(with("gpt2", "frobnicate", nullptr) == "same");
}

TEST_CASE("a class of another model is rejected unless its key is allowed") {
  const std::vector<std::pair<std::string, json>> foreign = {
      {"bert", {"NomicBertModel"}},      {"bert", {"BertForMaskedLM", "NomicBertModel"}},
      {"bert", {"RobertaModel"}},        {"llama", {"InternLMForCausalLM"}},
      {"llama", "LlamaForCausalLM"},     {"llama", {7}},
      {"qwen2", {"Qwen2MoeForCausalLM"}}};
  for (const auto &[family, names] : foreign) {
    INFO(family << " " << names.dump());
    json file = fileOf(family);
    file["architectures"] = names;
    CHECK_THROWS_WITH(parseConfig(file.dump(), "config.json"),
                      Catch::Contains("key 'architectures' = " + names.dump()) &&
                          Catch::Contains("--allow-key architectures builds the layer without it"));
    CHECK(parseConfig(file.dump(), "config.json", {"architectures"}).allowedKeys ==
          std::vector<std::string>{"architectures"});
  }
  for (const json &names : {json(nullptr), json::array(), json({"TFBertModel"}),
                            json({"BertForPreTraining", "BertModel"})}) {
    json file = fileOf("bert");
    file["architectures"] = names;
    CHECK_NOTHROW(parseConfig(file.dump(), "config.json"));
  }
}

TEST_CASE("scores in f32 are rejected unless they are allowed to be what they are") {
  json file = fileOf("gpt2");
  file["reorder_and_upcast_attn"] = true;
  CHECK_THROWS_WITH(
      parseConfig(file.dump(), "config.json"),
      Catch::Contains("key 'reorder_and_upcast_attn' = true") && Catch::Contains("--allow-key"));
  CHECK_NOTHROW(parseConfig(file.dump(), "config.json", {"reorder_and_upcast_attn"}));
}

TEST_CASE("a dropout that is no probability is rejected") {
  const std::vector<std::pair<std::string, std::string>> keys = {{"bert", "hidden_dropout_prob"},
                                                                 {"gpt2", "attn_pdrop"},
                                                                 {"llama", "attention_dropout"},
                                                                 {"opt", "layerdrop"},
                                                                 {"gpt2", "summary_first_dropout"}};
  for (const auto &[family, key] : keys)
    for (const json &value : {json(2.0), json(1), json(-0.5), json("a"), json(true)}) {
      json file = anyFileOf(family);
      file[key] = value;
      CHECK_THROWS_WITH(
          parseConfig(file.dump(), "config.json"),
          Catch::Contains("key '" + key + "'") && Catch::Contains("at least 0 and below 1"));
    }
}

TEST_CASE("each family's keys of dropout say what is dropped in training") {
  struct Expected {
    std::string family;
    json keys;
    Dropouts dropout;
  };
  // All values differ, so that no key can stand for another.
  const std::vector<Expected> families{
      {"bert",
       {{"hidden_dropout_prob", 0.2}, {"attention_probs_dropout_prob", 0.3}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.2, .feedForward = 0.2}},
      {"albert",
       {{"hidden_dropout_prob", 0.2}, {"attention_probs_dropout_prob", 0.3}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.2}},
      {"big_bird",
       {{"hidden_dropout_prob", 0.2}, {"attention_probs_dropout_prob", 0.3}},
       {.embedding = 0.2, .attention = 0.2, .feedForward = 0.2}},
      {"big_bird",
       {{"hidden_dropout_prob", 0.2},
        {"attention_probs_dropout_prob", 0.3},
        {"attention_type", "original_full"}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.2, .feedForward = 0.2}},
      {"longformer",
       {{"hidden_dropout_prob", 0.2}, {"attention_probs_dropout_prob", 0.3}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.2, .feedForward = 0.2}},
      {"distilbert",
       {{"dropout", 0.2}, {"attention_dropout", 0.3}},
       {.embedding = 0.2, .probabilities = 0.3, .feedForward = 0.2}},
      {"gpt2",
       {{"embd_pdrop", 0.2}, {"attn_pdrop", 0.3}, {"resid_pdrop", 0.4}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.4, .feedForward = 0.4}},
      {"gpt_neo",
       {{"embed_dropout", 0.2}, {"attention_dropout", 0.3}, {"resid_dropout", 0.4}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.4, .feedForward = 0.4}},
      {"bloom",
       {{"hidden_dropout", 0.2}, {"attention_dropout", 0.3}},
       {.probabilities = 0.3, .attention = 0.2, .feedForward = 0.2}},
      {"mpt",
       {{"emb_pdrop", 0.2}, {"attn_config", {{"attn_pdrop", 0.3}}}, {"resid_pdrop", 0.4}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.4, .feedForward = 0.4}},
      {"opt",
       {{"dropout", 0.2}, {"attention_dropout", 0.3}},
       {.probabilities = 0.3, .attention = 0.2, .feedForward = 0.2}},
      {"t5", {{"dropout_rate", 0.2}}, Dropouts::everywhere(0.2)},
      {"llama", {{"attention_dropout", 0.3}}, {.probabilities = 0.3}},
      {"phi3",
       {{"embd_pdrop", 0.2}, {"attention_dropout", 0.3}, {"resid_pdrop", 0.4}},
       {.embedding = 0.2, .probabilities = 0.3, .attention = 0.4, .feedForward = 0.4}}};
  for (const auto &[family, keys, dropout] : families) {
    INFO(family);
    json file = anyFileOf(family);
    file.update(keys);
    const ConfigDescription read = parseConfig(file.dump(), "config.json");
    CHECK(read.dropout == dropout);
    CHECK(read.specification.dropout == Dropouts());
  }
}

TEST_CASE("missing keys of dropout are what the family takes, and are said") {
  const std::vector<std::pair<std::string, double>> hidden = {
      {"bert", 0.1}, {"albert", 0}, {"gpt2", 0.1}, {"opt", 0.1}, {"gpt_neo", 0}, {"llama", 0}};
  for (const auto &[family, usual] : hidden) {
    INFO(family);
    json file = anyFileOf(family);
    for (const char *key :
         {"hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "attn_pdrop",
          "embd_pdrop", "dropout", "attention_dropout", "resid_dropout", "embed_dropout"})
      file.erase(key);
    const ConfigDescription read = parseConfig(file.dump(), "config.json");
    CHECK(read.dropout.attention == usual);
    CHECK(read.dropoutKeys.empty());
    CHECK(read.assumedDropouts.empty() == (usual == 0));
    CHECK(std::ranges::count(read.assumed, "hidden_dropout_prob = 0.1") == 0);
  }
}

TEST_CASE("dropout that no layer of the family has stands apart, unless it is 0 or of a head") {
  const auto others = [](const std::string &family, const json &keys) {
    json file = anyFileOf(family);
    file.update(keys);
    return parseConfig(file.dump(), "config.json").otherDropoutKeys;
  };
  using Names = std::vector<std::string>;
  CHECK(others("opt", {{"layerdrop", 0.1}}) == Names{"layerdrop"});
  CHECK(others("opt", {{"layerdrop", 0.0}, {"activation_dropout", 0}}) == Names{});
  CHECK(others("bert", {{"dropout", 0.1}, {"classifier_dropout", 0.5}}) == Names{"dropout"});
}

TEST_CASE("the error for a value that a layer cannot have says which it has") {
  json file = fileOf("bert");
  file["norm_type"] = "rms";
  CHECK_THROWS_WITH(parseConfig(file.dump(), "config.json"),
                    "config.json: key 'norm_type' = \"rms\": changes the mathematics of a layer "
                    "and is not supported; supported is "
                    "\"layer_norm\" or \"layernorm\" or \"LayerNorm\"");
  file["norm_type"] = "layer_norm";
  file["use_gated_mlp"] = true;
  CHECK_THROWS_WITH(parseConfig(file.dump(), "config.json"),
                    "config.json: key 'use_gated_mlp' = true: changes the mathematics of a layer "
                    "and is not supported; supported is false");
}
