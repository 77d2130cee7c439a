// config.json to layer specifications: what is honoured, what is rejected, and what every error
// says.
#include "kernel/Error.h"
#include "models/ConfigJson.h"
#include "models/Presets.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

using namespace weft;
using namespace weft::models;

namespace {

const std::string configs = WEFT_SOURCE_DIR "/models/configs/";

/// A shipped configuration with some keys replaced; a null replacement removes the key.
std::string changed(const std::string &file, const nlohmann::json &changes) {
  std::ifstream stream(configs + file);
  nlohmann::json object = nlohmann::json::parse(stream);
  for (const auto &[key, value] : changes.items()) {
    if (value.is_null()) object.erase(key);
    else object[key] = value;
  }
  return object.dump();
}

/// "badInput: text" of the error that parsing throws, or "no error".
std::string errorOf(const std::string &text) {
  try {
    parseConfig(text, "config.json");
  } catch (const Error &error) {
    return (error.kind == ErrorKind::badInput ? "badInput: " : "unsupported: ") +
           std::string(error.what());
  }
  return "no error";
}

std::string errorOf(const std::string &file, const nlohmann::json &changes) {
  return errorOf(changed(file, changes));
}

LayerSpecification parsed(const std::string &file,
                          const nlohmann::json &changes = nlohmann::json::object()) {
  return parseConfig(changed(file, changes), "config.json").specification;
}

}  // namespace

TEST_CASE("shipped configurations describe the presets of the same name") {
  for (const std::string name :
       {"albert-base", "bert-base", "bert-large", "distilbert", "gpt2", "llama-3-8b"}) {
    INFO(name);
    const ConfigDescription read = readConfig(configs + name + ".json");
    const LayerSpecification &preset = findPreset(name)->specification;
    CHECK(resolveDims(read.specification, {}) == resolveDims(preset, {}));
    LayerSpecification withoutDims = read.specification;
    withoutDims.dims = preset.dims;
    CHECK(withoutDims == preset);
    CHECK(read.elementType == (name == "llama-3-8b" ? std::optional(DType::bf16) : std::nullopt));
  }
}

TEST_CASE("the model type names a layer whose file is called config.json") {
  CHECK(parsed("bert-base.json").name == "bert");
  CHECK(parsed("gpt2.json").name == "gpt2");
  CHECK(parseConfig(changed("gpt2.json", {}), "/tmp/tiny-gpt.json").specification.name ==
        "tiny-gpt");
}

TEST_CASE("what a family takes for missing keys is built and said") {
  const auto read = [](const nlohmann::json &changes) {
    return parseConfig(changed("llama-3-8b.json", changes), "config.json");
  };
  const auto assumes = [](const ConfigDescription &description, const std::string &text) {
    return std::ranges::count(description.assumed, text) == 1;
  };
  CHECK(read({}).assumed.empty());
  const ConfigDescription mistral = read(
      {{"model_type", "mistral"}, {"architectures", nullptr}, {"num_key_value_heads", nullptr}});
  CHECK(mistral.specification.window == 4096);
  CHECK(mistral.specification.dims.at("g") == 8);
  CHECK(assumes(mistral, "sliding_window = 4096"));
  CHECK(assumes(mistral, "num_key_value_heads = 8"));
  const nlohmann::json wide = {{"model_type", "qwen2"},
                               {"architectures", nullptr},
                               {"attention_bias", nullptr},
                               {"num_key_value_heads", nullptr},
                               {"num_attention_heads", 64}};
  CHECK(read(wide).specification.dims.at("g") == 32);
  CHECK(assumes(read(wide), "num_key_value_heads = 32"));
  const ConfigDescription llama = read({{"num_key_value_heads", nullptr},
                                        {"rms_norm_eps", nullptr},
                                        {"rope_theta", nullptr},
                                        {"hidden_act", nullptr}});
  CHECK(llama.specification.dims.at("g") == 32);
  CHECK(llama.assumed == std::vector<std::string>{"num_key_value_heads = 32", "hidden_act = silu",
                                                  "rms_norm_eps = 1e-06", "rope_theta = 10000"});
}

TEST_CASE("a null rope_theta is a missing one, and two that contradict are rejected") {
  const auto file = [](const nlohmann::json &theta, const nlohmann::json &parameters) {
    nlohmann::json object = nlohmann::json::parse(changed("llama-3-8b.json", {}));
    object["rope_theta"] = theta;
    object["rope_parameters"] = parameters;
    return object.dump();
  };
  const auto inner = [](const nlohmann::json &theta) {
    return nlohmann::json{{"rope_type", "default"}, {"rope_theta", theta}};
  };
  const std::vector<std::string> usual = {"rope_theta = 10000"};
  for (const std::string &text : {file(nullptr, nullptr), file(nullptr, inner(nullptr)),
                                  file(nullptr, {{"rope_type", "default"}})}) {
    INFO(text);
    const ConfigDescription read = parseConfig(text, "config.json");
    CHECK(read.specification.rotaryBase == 10000);
    CHECK(read.assumed == usual);
  }
  for (const std::string &text :
       {file(5e5, inner(5e5)), file(500000, inner(5e5)), file(nullptr, inner(5e5)),
        file(5e5, inner(nullptr)), file(5e5, nullptr)}) {
    INFO(text);
    const ConfigDescription read = parseConfig(text, "config.json");
    CHECK(read.specification.rotaryBase == 5e5);
    CHECK(read.assumed.empty());
  }
  CHECK(errorOf(file(10000, inner(500000))) ==
        "badInput: config.json: key 'rope_theta' = 10000: contradicts "
        "'rope_parameters.rope_theta' = 500000");
}

TEST_CASE("a null means none where the family has it so, and is rejected where it means nothing") {
  nlohmann::json file = nlohmann::json::parse(
      changed("llama-3-8b.json", {{"model_type", "mistral"}, {"architectures", nullptr}}));
  file["sliding_window"] = nullptr;
  file["num_key_value_heads"] = nullptr;
  const ConfigDescription read = parseConfig(file.dump(), "config.json");
  CHECK_FALSE(read.specification.window);
  CHECK(read.specification.dims.at("g") == 32);
  CHECK(read.assumed.empty());
  file["hidden_act"] = nullptr;
  CHECK(errorOf(file.dump()) ==
        "badInput: config.json: key 'hidden_act' = null: must name an activation, as \"silu\"");
}

TEST_CASE("qwen2 has its biases whatever a file says, so a file that says it is rejected") {
  for (const bool bias : {true, false})
    CHECK(errorOf("llama-3-8b.json",
                  {{"model_type", "qwen2"}, {"architectures", nullptr}, {"attention_bias", bias}})
              .starts_with("unsupported: config.json: key 'attention_bias'"));
}

TEST_CASE("keys without influence are listed, those of dropout apart") {
  const ConfigDescription read = parseConfig(changed("gpt2.json", {}), "config.json");
  const std::vector<std::string> expected = {"architectures",     "bos_token_id", "eos_token_id",
                                             "initializer_range", "n_ctx",        "n_layer",
                                             "summary_type",      "vocab_size"};
  CHECK(read.ignoredKeys == expected);
  CHECK(read.dropoutKeys == std::vector<std::string>{"attn_pdrop", "embd_pdrop", "resid_pdrop"});
  CHECK(read.dropout ==
        Dropouts{.embedding = 0.1, .probabilities = 0.1, .attention = 0.1, .feedForward = 0.1});
}

TEST_CASE(
    "an unknown key is an error with its name, its value and the nearest known one, unless it is "
    "allowed") {
  CHECK(errorOf("gpt2.json", {{"layer_norm_epsilom", 3}}) ==
        "unsupported: config.json: key 'layer_norm_epsilom' = 3: is not a known key and may change "
        "the mathematics of a "
        "layer; nearest is 'layer_norm_epsilon'; --allow-key layer_norm_epsilom builds the layer "
        "without it");
  CHECK(errorOf("gpt2.json", {{"zzz", {1, 2}}}) ==
        "unsupported: config.json: key 'zzz' = [1,2]: is not a known key and may change the "
        "mathematics of a layer; "
        "--allow-key zzz builds the layer without it");
  const std::string text = changed("gpt2.json", {{"frobnicate", 3}});
  const ConfigDescription read = parseConfig(text, "config.json", {"frobnicate"});
  CHECK(read.allowedKeys == std::vector<std::string>{"frobnicate"});
  CHECK(read.specification == parsed("gpt2.json"));
  const auto rejection = [&](const std::string &key) {
    try {
      parseConfig(text, "config.json", {"frobnicate", key});
    } catch (const Error &error) {
      CHECK(error.kind == ErrorKind::badInput);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(rejection("frobnicat")
            .starts_with(
                "--allow-key frobnicat: config.json has no such key; nearest is 'frobnicate'"));
  CHECK(rejection("n_embd") ==
        "--allow-key n_embd: 'n_embd' is a key that weft knows; it is honoured or rejected");
}

TEST_CASE("the element type is the file's, in PyTorch's spelling") {
  const auto elementType = [](const nlohmann::json &changes) {
    return parseConfig(changed("gpt2.json", changes), "config.json");
  };
  for (const char *key : {"dtype", "torch_dtype"}) {
    CHECK(elementType({{key, "float16"}}).elementType == DType::f16);
    CHECK(elementType({{key, "bfloat16"}}).elementType == DType::bf16);
    CHECK(elementType({{key, "torch.float32"}}).elementType == DType::f32);
    const ConfigDescription other = elementType({{key, "float64"}});
    CHECK_FALSE(other.elementType.has_value());
    CHECK((other.elementTypeKey == key && other.elementTypeName == "float64"));
  }
  CHECK(elementType({}).elementTypeKey.empty());
  CHECK(
      errorOf("gpt2.json", {{"dtype", "float16"}, {"torch_dtype", "bfloat16"}}) ==
      "badInput: config.json: key 'torch_dtype' = \"bfloat16\": contradicts 'dtype' = \"float16\"");
}

TEST_CASE("settings that change the mathematics reach the specification") {
  CHECK(parsed("bert-base.json", {{"hidden_act", "relu"}}).activation == Activation::relu);
  CHECK(parsed("bert-base.json", {{"hidden_act", "gelu_new"}}).activation == Activation::geluTanh);
  CHECK(parsed("bert-base.json", {{"layer_norm_eps", 0.25}}).epsilon == 0.25);
  CHECK(parsed("bert-base.json", {{"is_decoder", true}}).causal);
  CHECK(parsed("bert-base.json", {{"model_type", "roberta"}, {"architectures", nullptr}}).family ==
        Family::encoder);
  CHECK(parsed("gpt2.json", {{"n_inner", 100}}).dims.at("u") == 100);
  CHECK_FALSE(parsed("gpt2.json", {{"scale_attn_weights", false}}).scaleScores);
  CHECK(parsed("llama-3-8b.json", {{"rope_theta", 1234}}).rotaryBase == 1234);
  CHECK(parsed("llama-3-8b.json", {{"head_dim", 64}}).dims.at("p") == 64);
  CHECK(parsed("llama-3-8b.json", {{"num_key_value_heads", nullptr}}).dims.at("g") == 32);
  const LayerSpecification biased =
      parsed("llama-3-8b.json", {{"attention_bias", true}, {"mlp_bias", true}});
  CHECK((biased.projectionBias && biased.outputBias && biased.feedForwardBias));
  CHECK(parsed("llama-3-8b.json",
               {{"model_type", "mistral"}, {"architectures", nullptr}, {"sliding_window", 512}})
            .window == 512);
  const LayerSpecification qwen =
      parsed("llama-3-8b.json",
             {{"model_type", "qwen2"}, {"architectures", nullptr}, {"attention_bias", nullptr}});
  CHECK((qwen.projectionBias && !qwen.outputBias));
  const nlohmann::json rope = {{"rope_type", "default"}, {"rope_theta", 7.5}};
  CHECK(
      parsed("llama-3-8b.json", {{"rope_theta", nullptr}, {"rope_parameters", rope}}).rotaryBase ==
      7.5);
}

TEST_CASE("layers of Qwen are full and sliding, and rotary positions scaled, as a file says") {
  const auto qwen = [](nlohmann::json own) {
    own.update({{"model_type", "qwen3"},
                {"hidden_size", 64},
                {"num_attention_heads", 2},
                {"intermediate_size", 96},
                {"num_key_value_heads", 2},
                {"num_hidden_layers", 4}});
    return own;
  };
  const auto read = [&](const nlohmann::json &own) {
    return parseConfig(qwen(own).dump(), "config.json");
  };
  const nlohmann::json sliding = {
      {"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 3}};
  const LayerSpecification mixed = read(sliding).specification;
  CHECK((mixed.normalizesHeads && mixed.dims.at("p") == 128 && !mixed.window));
  CHECK(mixed.layerWindows == std::vector<int64_t>{0, 0, 0, 16});
  nlohmann::json named = sliding;
  named["layer_types"] = {"sliding_attention", "full_attention"};
  CHECK(read(named).specification.layerWindows == std::vector<int64_t>{16, 0});
  named["max_window_layers"] = 0;
  named.erase("layer_types");
  CHECK(read(named).specification.window == 16);
  named["max_window_layers"] = 4;
  CHECK(read(named).notes == std::vector<std::string>{"no layer has a sliding window"});
  const nlohmann::json scaling = {{"rope_type", "llama3"},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 8192}};
  const RotaryScaling expected{.factor = 8, .original = 8192, .low = 1, .high = 4};
  CHECK(parsed("llama-3-8b.json", {{"rope_scaling", scaling}}).rotaryScaling == expected);
  CHECK(parsed("llama-3-8b.json", {{"rope_parameters", scaling}}).rotaryScaling == expected);
  CHECK(errorOf("llama-3-8b.json", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                                    {"rope_parameters", scaling}}) ==
        "badInput: config.json: key 'rope_scaling' = {\"factor\":2,\"type\":\"linear\"}: "
        "contradicts 'rope_parameters'");
  nlohmann::json lacks = scaling;
  lacks.erase("low_freq_factor");
  CHECK(errorOf("llama-3-8b.json", {{"rope_scaling", lacks}}).find("'low_freq_factor'") !=
        std::string::npos);
}

TEST_CASE("families whose scores have biases say which") {
  const auto read = [](const char *text) { return parseConfig(text, "config.json"); };
  const LayerSpecification bloom =
      read(R"({"model_type": "bloom", "n_embed": 64, "n_head": 4})").specification;
  CHECK((bloom.family == Family::decoder && bloom.causal && bloom.score.alibi == 8));
  CHECK((bloom.dims.at("u") == 256 && bloom.activation == Activation::geluTanh));
  const LayerSpecification mpt = read(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4,
      "attn_config": {"alibi": true, "alibi_bias_max": 16}, "expansion_ratio": 2})")
                                     .specification;
  CHECK((mpt.score.alibi == 16 && !mpt.normBias && !mpt.feedForwardBias));
  CHECK(mpt.dims.at("u") == 128);
  const ConfigDescription t5 = read(R"({"model_type": "t5", "d_model": 64, "d_kv": 8, "d_ff": 96,
      "num_heads": 4, "feed_forward_proj": "gated-gelu"})");
  CHECK(t5.assumed.front() == "is_decoder = false");
  CHECK((t5.specification.gatedFeedForward && !t5.specification.scaleScores));
  CHECK((t5.specification.activation == Activation::geluTanh && !t5.specification.crossAttention));
  CHECK((t5.specification.score.relative == 128 && t5.specification.score.hasBuckets));
  CHECK(t5.specification.dims.at("n") == 32);
  const LayerSpecification decoder = read(R"({"model_type": "t5", "d_model": 64, "d_kv": 8,
      "d_ff": 96, "num_heads": 4, "is_decoder": true, "relative_attention_num_buckets": 8,
      "relative_attention_max_distance": 20})")
                                         .specification;
  CHECK((decoder.crossAttention && decoder.causal && decoder.score.relative == 20));
  CHECK(decoder.dims.at("n") == 8);
  const auto rejects = [](const std::string &text, const std::string &says) {
    INFO(text);
    CHECK(errorOf(text).find(says) != std::string::npos);
  };
  const std::string mptSizes = R"({"model_type": "mpt", "d_model": 64, "n_heads": 4, )";
  rejects(mptSizes + R"("attn_config": {"alibi": false}})",
          "key 'alibi' = false: learned positions of mpt are not supported");
  rejects(mptSizes + R"("attn_config": {"clip_qkv": 6}})", "'clip_qkv' = 6");
  rejects(mptSizes + R"("attn_config": {"attn_type": "multiquery_attention"}})", "'attn_type'");
  rejects(mptSizes + R"("attn_config": {"rope": true}})", "'attn_config'");
  rejects(mptSizes + R"("no_bias": false})", "'no_bias' = false");
  const std::string t5Sizes =
      R"({"model_type": "t5", "d_model": 64, "d_kv": 8, "d_ff": 96, "num_heads": 4, )";
  rejects(t5Sizes + R"("feed_forward_proj": "gated-geluu"})", "nearest is 'gated-gelu'");
  rejects(t5Sizes + R"("is_gated_act": true})", "'is_gated_act' = true: contradicts");
  rejects(t5Sizes + R"("relative_attention_num_buckets": 31})", "equally many buckets");
  rejects(t5Sizes + R"("relative_attention_max_distance": 8})", "larger than the 8 distances");
}

TEST_CASE("files of DeBERTa say which terms of distances there are") {
  const auto read = [](const nlohmann::json &changes) {
    nlohmann::json file = {{"model_type", "deberta"},      {"hidden_size", 768},
                           {"num_attention_heads", 12},    {"intermediate_size", 3072},
                           {"num_hidden_layers", 12},      {"vocab_size", 50265},
                           {"relative_attention", true},   {"pos_att_type", "c2p|p2c"},
                           {"max_relative_positions", -1}, {"position_biased_input", false},
                           {"type_vocab_size", 0}};
    if (!changes.is_null()) file.update(changes);
    return file.dump();
  };
  const auto specified = [&](const nlohmann::json &changes) {
    return parseConfig(read(changes), "config.json").specification;
  };
  LayerSpecification base = specified({});
  base.name = "deberta-base";
  CHECK(base == findPreset("deberta-base")->specification);
  const LayerSpecification one =
      specified({{"pos_att_type", {"p2c"}}, {"max_relative_positions", 24}});
  CHECK((!one.queryDistances && one.keyDistances && one.dims.at("n") == 48));
  const LayerSpecification none =
      specified({{"relative_attention", false}, {"pos_att_type", nullptr}});
  CHECK((none.disentangled && !none.hasDistances()));
  const LayerSpecification placed =
      specified({{"position_biased_input", true}, {"type_vocab_size", 2}});
  CHECK((placed.model.hasPositions && placed.model.tokenTypes == 2));
  // Without a table of positions a sequence may be longer than the distances.
  CHECK(parseConfig(read({}), "config.json").positionsKey.empty());
  CHECK(parseConfig(read({{"position_biased_input", true}, {"max_position_embeddings", 64}}),
                    "config.json")
            .positions == 64);
  const auto rejects = [&](const nlohmann::json &changes, const std::string &says) {
    INFO(changes.dump());
    CHECK(errorOf(read(changes)).find(says) != std::string::npos);
  };
  rejects({{"pos_att_type", "c2p|p2p"}}, R"('pos_att_type' = "c2p|p2p": supported are "c2p")");
  rejects({{"pos_att_type", 3}}, "must name terms of scores");
  rejects({{"relative_attention", false}}, "which 'relative_attention' = false leaves out");
  rejects({{"max_relative_positions", 2.5}}, "must be an integer");
  rejects({{"max_relative_positions", 1 << 21}}, "at most 1048576 (2^20) distances");
  rejects({{"talking_head", true}}, "mixed heads");
  rejects({{"embedding_size", 128}}, "tables of another width");
  rejects({{"is_decoder", true}}, "causal layers of deberta");
  rejects({{"model_type", "deberta-v2"}}, "nearest is 'deberta'");
}

TEST_CASE("files of sparse attention describe the presets of the same name") {
  const auto read = [](const nlohmann::json &object) {
    return parseConfig(object.dump(), "config.json");
  };
  const auto isPreset = [](LayerSpecification specification, const char *name) {
    specification.name = name;
    return specification == findPreset(name)->specification;
  };
  nlohmann::json neo = {{"model_type", "gpt_neo"}, {"hidden_size", 2048}, {"num_heads", 16},
                        {"window_size", 256},      {"num_layers", 24},    {"vocab_size", 50257}};
  const ConfigDescription mixed = read(neo);
  CHECK(isPreset(mixed.specification, "gpt-neo-1.3b"));
  CHECK(mixed.notes ==
        std::vector<std::string>{"layers are global and local; one alone is the global one, and "
                                 "with --mask window=255 the local one"});
  neo["attention_types"] = {{{"global", "global", "local"}, 2}, {{"local"}, 1}};
  CHECK(read(neo).specification.layerWindows == std::vector<int64_t>{0, 0, 256, 0, 0, 256, 256});
  neo["attention_layers"] = {"global", "local"};
  CHECK(errorOf(neo.dump()).find("contradicts 'attention_types'") != std::string::npos);
  neo.erase("attention_layers");
  neo["attention_types"] = {{{"local"}, 24}};
  LayerSpecification local = read(neo).specification;
  local.model = {};
  CHECK(isPreset(local, "gpt-neo-1.3b-local"));
  CHECK(read(neo).notes.empty());
  neo["attention_layers"] = {"local", "sliding"};
  CHECK(errorOf(neo.dump()) ==
        "unsupported: config.json: key 'attention_layers' = [\"local\",\"sliding\"]: supported are "
        "\"global\" and \"local\"");

  nlohmann::json bird = {{"model_type", "big_bird"},
                         {"hidden_size", 1024},
                         {"num_attention_heads", 16},
                         {"intermediate_size", 4096},
                         {"max_position_embeddings", 4096},
                         {"num_hidden_layers", 24},
                         {"vocab_size", 50358}};
  CHECK(isPreset(read(bird).specification, "bigbird-large"));
  CHECK(read(bird).notes.size() == 1);
  bird["attention_type"] = "original_full";
  CHECK_FALSE(read(bird).specification.blocks);
  bird["block_size"] = 48;
  CHECK(errorOf(bird.dump()) ==
        "unsupported: config.json: key 'block_size' = 48: supported are 16, 32, 64 and 128");

  nlohmann::json former = {{"model_type", "longformer"},     {"hidden_size", 1024},
                           {"num_attention_heads", 16},      {"intermediate_size", 4096},
                           {"attention_window", {512, 512}}, {"layer_norm_eps", 1e-5},
                           {"num_hidden_layers", 24},        {"max_position_embeddings", 4098},
                           {"type_vocab_size", 1},           {"vocab_size", 50265}};
  LayerSpecification one = read(former).specification;
  CHECK(one.dims.at("a") == 1);
  one.dims["a"] = 64;
  CHECK(isPreset(one, "longformer-large"));
  CHECK(read(former).specification.model.firstPosition == 2);
  former["pad_token_id"] = 3;
  const ModelSpecification model = read(former).specification.model;
  CHECK((model.firstPosition == 4 && model.weightNames.empty()));
  former["attention_window"] = {512, 256};
  CHECK(errorOf(former.dump()).find("windows that differ by layer") != std::string::npos);
  former["attention_window"] = 31;
  CHECK(errorOf(former.dump()) ==
        "badInput: config.json: key 'attention_window' = 31: must be an even number of keys, at "
        "least 2");
}

TEST_CASE("DistilBERT spells the same layer differently") {
  const auto read =
      parseConfig(R"({"model_type": "distilbert", "dim": 768, "n_heads": 12, "hidden_dim": 3072,
                                    "activation": "gelu", "n_layers": 6, "sinusoidal_pos_embds":
                                    false})",
                  "config.json");
  LayerSpecification expected = findPreset("bert-base")->specification;
  expected.name = "distilbert";
  // Without a vocabulary no whole model of it is built.
  expected.model = {.layers = 6, .hasPositions = true, .weightNames = "distilbert"};
  CHECK(read.specification == expected);
}

TEST_CASE("layers of several kinds are no ALBERT that is built") {
  for (const char *key : {"num_hidden_groups", "inner_group_num"})
    CHECK(errorOf("albert-base.json", {{key, 2}}) ==
          fmt::format("unsupported: config.json: key '{}' = 2: layers of several kinds are not "
                      "supported; supported is 1",
                      key));
  CHECK(parsed("albert-base.json", {{"embedding_size", nullptr}}).model.embedding == 128);
}

TEST_CASE("malformed and truncated files say line and column") {
  CHECK(errorOf("{\n  \"a\": 1,\n  \"b\" 2\n}")
            .rfind("badInput: config.json:3:7: not valid JSON: ", 0) == 0);
  CHECK(errorOf("").rfind("badInput: config.json:1:1: not valid JSON: ", 0) == 0);
  CHECK(errorOf("[1, 2]") ==
        "badInput: config.json: the root must be an object of settings, not array");
  CHECK(errorOf(R"({"n_embd": 1, "n_embd": 2})") ==
        "badInput: config.json: key 'n_embd' occurs twice");
  CHECK(errorOf(R"({"nested": {"a": 1}, "other": {"a": 2}})") ==
        "badInput: config.json: key 'model_type' is missing; it must be a string");
  const std::string whole = changed("bert-base.json", {});
  for (size_t size = 0; size < whole.size(); size += 7) {
    INFO("first " << size << " bytes");
    CHECK(errorOf(whole.substr(0, size)).rfind("badInput: config.json:1:", 0) == 0);
  }
}

TEST_CASE("a file that cannot be read is bad input") {
  CHECK_THROWS_WITH(readConfig("/no/such/config.json"),
                    "/no/such/config.json: there is no such file");
  CHECK_THROWS_WITH(readConfig("/"), "/: is a folder, not a config.json");
}

TEST_CASE("missing, mistyped and out-of-range values") {
  CHECK(errorOf("bert-base.json", {{"hidden_size", nullptr}}) ==
        "badInput: config.json: key 'hidden_size' is missing; it must be an integer in "
        "1..2147483647");
  CHECK(errorOf("gpt2.json", {{"n_head", nullptr}}) ==
        "badInput: config.json: key 'n_head' or 'num_attention_heads' "
        "is missing; it must be an integer in 1..2147483647");
  CHECK(errorOf("bert-base.json", {{"hidden_size", "768"}}) ==
        "badInput: config.json: key 'hidden_size' = \"768\": must be an integer, not string");
  CHECK(errorOf("bert-base.json", {{"hidden_size", 768.5}}) ==
        "badInput: config.json: key 'hidden_size' = 768.5: must be an integer, not number");
  CHECK(errorOf("bert-base.json", {{"intermediate_size", 0}}) ==
        "badInput: config.json: key 'intermediate_size' = 0: is outside 1..2147483647");
  CHECK(errorOf("bert-base.json", {{"intermediate_size", -4}}) ==
        "badInput: config.json: key 'intermediate_size' = -4: is outside 1..2147483647");
  CHECK(
      errorOf("bert-base.json", {{"hidden_size", 18446744073709551615u}}) ==
      "badInput: config.json: key 'hidden_size' = 18446744073709551615: is outside 1..2147483647");
  CHECK(errorOf("bert-base.json", {{"layer_norm_eps", 0}}) ==
        "badInput: config.json: key 'layer_norm_eps' = 0: must be finite and above 0");
  CHECK(errorOf("llama-3-8b.json", {{"attention_bias", 1}}) ==
        "badInput: config.json: key 'attention_bias' = 1: must be true or false, not number");
  CHECK(errorOf("bert-base.json", {{"hidden_act", 3}}) ==
        "badInput: config.json: key 'hidden_act' = 3: must be a string, not number");
}

TEST_CASE("contradictions name both sides") {
  CHECK(errorOf("bert-base.json", {{"hidden_size", 770}}) ==
        "badInput: config.json: key 'hidden_size' = 770: is not divisible by 'num_attention_heads' "
        "= 12");
  CHECK(errorOf("gpt2.json", {{"n_head", 7}}) ==
        "badInput: config.json: key 'n_embd' = 768: is not divisible by 'n_head' = 7");
  CHECK(errorOf("gpt2.json", {{"hidden_size", 512}}) ==
        "badInput: config.json: key 'hidden_size' = 512: contradicts 'n_embd' = 768");
  CHECK(errorOf("llama-3-8b.json", {{"num_key_value_heads", 5}}) ==
        "badInput: config.json: key 'num_attention_heads' = 32: is not divisible by "
        "'num_key_value_heads' = 5");
}

TEST_CASE("mathematics that no builder expresses is unsupported") {
  CHECK(
      errorOf("bert-base.json", {{"model_type", "berd"}}) ==
      "unsupported: config.json: key 'model_type' = \"berd\": unsupported model; nearest is "
      "'bert' (known: albert, bert, big_bird, bloom, camembert, deberta, distilbert, gemma, gpt2, "
      "gpt_neo, llama, longformer, mistral, mpt, opt, phi3, qwen2, qwen3, roberta, t5, "
      "xlm-roberta)");
  CHECK(errorOf("bert-base.json", {{"hidden_act", "gelu_neww"}}) ==
        "unsupported: config.json: key 'hidden_act' = \"gelu_neww\": unknown activation; nearest "
        "is 'gelu_new' (known: "
        "gelu, gelu_fast, gelu_new, gelu_python, gelu_pytorch_tanh, quick_gelu, relu, silu, "
        "swish)");
  const std::vector<std::pair<std::string, nlohmann::json>> rejected = {
      {"bert-base.json", {{"position_embedding_type", "relative_key"}}},
      {"bert-base.json", {{"add_cross_attention", true}}},
      {"bert-base.json", {{"quantization_config", {{"bits", 4}}}}},
      {"bert-base.json", {{"pruned_heads", {{"1", {2}}}}}},
      {"gpt2.json", {{"scale_attn_by_inverse_layer_idx", true}}},
      {"gpt2.json", {{"alibi", true}}},
      {"llama-3-8b.json", {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 8.0}}}}},
      {"llama-3-8b.json", {{"rope_parameters", {{"rope_type", "yarn"}}}}},
      {"llama-3-8b.json", {{"rope_parameters", {{"rope_type", "default"}, {"factor", 2.0}}}}},
      {"llama-3-8b.json", {{"partial_rotary_factor", 0.5}}},
      {"llama-3-8b.json", {{"layer_types", {"full_attention", "sliding_attention"}}}},
  };
  for (const auto &[file, changes] : rejected) {
    const std::string key = changes.begin().key();
    INFO(file << " " << changes.dump());
    CHECK(errorOf(file, changes).rfind("unsupported: config.json: key '" + key + "' = ", 0) == 0);
  }
  CHECK(errorOf("bert-base.json", {{"quantization_config", nlohmann::json::object()}}) ==
        "no error");
}
