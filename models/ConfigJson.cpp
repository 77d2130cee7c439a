// One reader a family of config.json files, chosen by `model_type` in a table. A reader asks for
// every key that decides the mathematics of one layer; what it did not ask for must stand in the
// lists of ConfigKeys.h. Meanings are those of the published model documentation of each family.
#include "models/ConfigJson.h"

#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/ScoreBias.h"
#include "models/ConfigKeys.h"
#include "models/ConfigReader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace weft::models {
namespace {

Activation activation(ConfigReader &reader, const Keys &keys, const std::string &absent) {
  static const std::map<std::string, Activation> known = {
      {"gelu", Activation::gelu},         {"gelu_fast", Activation::geluTanh},
      {"gelu_new", Activation::geluTanh}, {"gelu_pytorch_tanh", Activation::geluTanh},
      {"gelu_python", Activation::gelu},  {"quick_gelu", Activation::quickGelu},
      {"relu", Activation::relu},         {"silu", Activation::silu},
      {"swish", Activation::silu}};
  for (const std::string &key : keys)
    if (reader.has(key) && reader.value(key).is_null())
      throw reader.error(ErrorKind::badInput, key,
                         fmt::format("must name an activation, as \"{}\"", absent));
  if (!reader.hasAny(keys)) reader.assume(keys.front(), absent);
  const std::string name = reader.text(keys, absent);
  if (const auto at = known.find(name); at != known.end()) return at->second;
  std::vector<std::string> names;
  for (const auto &[spelling, value] : known) names.push_back(spelling);
  throw Error::unsupported("{}: key '{}' = \"{}\": unknown activation{}", reader.where(),
                           keys.front(), name, nearestAndKnown(name, names));
}

/// Keys of any model; T5 reads for itself that it is an encoder-decoder model.
void rejectCommon(ConfigReader &reader, const std::string &modelType) {
  reader.rejectFlag("add_cross_attention", "cross attention is not supported");
  if (modelType != "t5")
    reader.rejectFlag("is_encoder_decoder", "encoder-decoder models are not supported");
  reader.rejectValue("quantization_config",
                     "quantized weights are not supported; supported are f32, f16 and bf16");
}

/// The first of the keys that holds a positive integer; 0 if none does. What it asks for decides
/// nothing of one layer, so it does not count as read.
int64_t sizeBesideLayers(const ConfigReader &reader, const Keys &keys, int64_t absent = 0) {
  for (const std::string &key : keys)
    if (reader.has(key) && !reader.value(key).is_null()) {
      const nlohmann::json &value = reader.value(key);
      return value.is_number_integer() && value.get<int64_t>() > 0 ? value.get<int64_t>() : 0;
    }
  return absent;
}

/// A list of layers has at most so many entries; no model has as many.
constexpr int64_t mostListedLayers = 4096;

void requireMultiple(const ConfigReader &reader, const std::string &key, int64_t value,
                     const std::string &divisorKey, int64_t divisor) {
  if (value % divisor != 0)
    throw reader.error(ErrorKind::badInput, key,
                       fmt::format("is not divisible by '{}' = {}", divisorKey, divisor));
}

/// A key of dropout and what the family takes without it.
struct DropoutKey {
  const char *key;
  double usual = 0;
};

/// Of three keys.
Dropouts readDropouts(ConfigReader &reader, DropoutKey embedding, DropoutKey probabilities,
                      DropoutKey stream) {
  const auto read = [&](const DropoutKey &key) { return reader.probability(key.key, key.usual); };
  const double added = read(stream);
  return {.embedding = read(embedding),
          .probabilities = read(probabilities),
          .attention = added,
          .feedForward = added};
}

/// One key for the embeddings and what is added to the stream, another for probabilities.
Dropouts readDropouts(ConfigReader &reader, DropoutKey hidden, DropoutKey probabilities) {
  Dropouts dropout{.probabilities = reader.probability(probabilities.key, probabilities.usual)};
  dropout.embedding = dropout.attention = dropout.feedForward =
      reader.probability(hidden.key, hidden.usual);
  return dropout;
}

LayerSpecification readBert(ConfigReader &reader, const std::string &usualActivation,
                            double usualEpsilon = 1e-12, double usualDropout = 0.1) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads"});
  requireMultiple(reader, "hidden_size", hidden, "num_attention_heads", heads);
  const std::string position = reader.text({"position_embedding_type"}, "absolute");
  if (position != "absolute")
    throw reader.error(ErrorKind::unsupported, "position_embedding_type",
                       "changes the attention scores; supported is \"absolute\"");
  return {.family = Family::encoder,
          .dims = {{"b", 8},
                   {"j", 512},
                   {"h", heads},
                   {"i", hidden},
                   {"u", reader.requiredInteger({"intermediate_size"})}},
          .activation = activation(reader, {"hidden_act"}, usualActivation),
          .dropout = readDropouts(reader, {"hidden_dropout_prob", usualDropout},
                                  {"attention_probs_dropout_prob", usualDropout}),
          .epsilon = reader.positiveOr({"layer_norm_eps"}, usualEpsilon),
          .causal = reader.flag("is_decoder", false)};
}

LayerSpecification readPlainBert(ConfigReader &reader) { return readBert(reader, "gelu"); }

/// One kind of layer that all share: groups of several kinds are other mathematics. Nothing drops
/// what the feed-forward adds.
LayerSpecification readAlbert(ConfigReader &reader) {
  LayerSpecification specification = readBert(reader, "gelu_new", 1e-12, 0);
  specification.dropout.feedForward = 0;
  for (const char *key : {"num_hidden_groups", "inner_group_num"})
    if (reader.integerOr(key, 1).value_or(1) != 1)
      throw reader.error(ErrorKind::unsupported, key,
                         "layers of several kinds are not supported; supported is 1");
  return specification;
}

/// Which terms of distances scores have: "c2p|p2c", or a list.
std::set<std::string> debertaTerms(ConfigReader &reader) {
  constexpr const char *key = "pos_att_type";
  const nlohmann::json *value = reader.find(key);
  std::set<std::string> terms;
  if (!value || value->is_null()) return terms;
  if (value->is_string()) {
    std::istringstream text(value->get<std::string>());
    for (std::string term; std::getline(text, term, '|');) terms.insert(term);
  } else if (value->is_array()) {
    for (const nlohmann::json &term : *value)
      terms.insert(term.is_string() ? term.get<std::string>() : term.dump());
  } else {
    throw reader.error(ErrorKind::badInput, key, "must name terms of scores, as \"c2p|p2c\"");
  }
  for (const std::string &term : terms)
    if (term != "c2p" && term != "p2c")
      throw reader.error(ErrorKind::unsupported, key,
                         "supported are \"c2p\", \"p2c\" and \"c2p|p2c\"");
  return terms;
}

/// A file without the key has a table of positions.
bool hasDebertaPositions(const ConfigReader &reader) {
  constexpr const char *key = "position_biased_input";
  return !reader.has(key) || reader.value(key) != false;
}

/// Rows of the table of distances to one side: as many as there are positions, unless a key says.
int64_t debertaDistances(ConfigReader &reader) {
  constexpr const char *own = "max_relative_positions";
  constexpr int64_t most = int64_t(1) << 20, positions = 512;
  const nlohmann::json *value = reader.find(own);
  if (value && !value->is_null() && !value->is_number_integer())
    throw reader.error(ErrorKind::badInput, own, "must be an integer; -1 means all positions");
  const bool isGiven = value && value->is_number_integer() && value->get<int64_t>() > 0;
  const int64_t distances =
      isGiven ? value->get<int64_t>()
              : reader.integerOr("max_position_embeddings", positions).value_or(positions);
  if (distances > most)
    throw reader.error(
        ErrorKind::unsupported, isGiven ? own : "max_position_embeddings",
        fmt::format("at most {} (2^20) distances to either side are supported", most));
  return distances;
}

/// BERT without biases of keys, whose scores have terms of distances.
LayerSpecification readDeberta(ConfigReader &reader) {
  LayerSpecification specification = readBert(reader, "gelu", 1e-7);
  reader.rejectFlag("is_decoder", "causal layers of deberta are not supported");
  reader.rejectFlag("talking_head", "mixed heads are not supported");
  reader.flag("position_biased_input", true);
  const int64_t hidden = specification.dims.at("i");
  if (reader.integer({"embedding_size"}).value_or(hidden) != hidden)
    throw reader.error(ErrorKind::unsupported, "embedding_size",
                       fmt::format("tables of another width than 'hidden_size' = {} are not "
                                   "supported",
                                   hidden));
  specification.disentangled = true;
  const std::set<std::string> terms = debertaTerms(reader);
  reader.find("max_relative_positions");  // of no meaning without terms
  if (!reader.has("relative_attention")) reader.assume("relative_attention", "false");
  if (!reader.flag("relative_attention", false)) {
    if (!terms.empty())
      throw reader.error(ErrorKind::badInput, "pos_att_type",
                         "has terms of distances, which 'relative_attention' = false leaves out");
    return specification;
  }
  specification.queryDistances = terms.contains("c2p");
  specification.keyDistances = terms.contains("p2c");
  if (specification.hasDistances()) specification.dims["n"] = 2 * debertaDistances(reader);
  return specification;
}

/// Nothing drops what attention adds.
LayerSpecification readDistilBert(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"dim", "hidden_size"});
  const int64_t heads = reader.requiredInteger({"n_heads", "num_attention_heads"});
  requireMultiple(reader, "dim", hidden, "n_heads", heads);
  Dropouts dropout = readDropouts(reader, {"dropout", 0.1}, {"attention_dropout", 0.1});
  dropout.attention = 0;
  return {.family = Family::encoder,
          .dims = {{"b", 8},
                   {"j", 512},
                   {"h", heads},
                   {"i", hidden},
                   {"u", reader.requiredInteger({"hidden_dim"})}},
          .activation = activation(reader, {"activation"}, "gelu"),
          .dropout = dropout,
          .epsilon = 1e-12};
}

LayerSpecification readGpt2(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"n_embd", "hidden_size"});
  const int64_t heads = reader.requiredInteger({"n_head", "num_attention_heads"});
  requireMultiple(reader, "n_embd", hidden, "n_head", heads);
  reader.rejectFlag("scale_attn_by_inverse_layer_idx",
                    "a scale that depends on the layer is not supported");
  return {.family = Family::decoder,
          .dims = {{"b", 1},
                   {"j", 1024},
                   {"h", heads},
                   {"i", hidden},
                   {"u", reader.integer({"n_inner"}).value_or(4 * hidden)}},
          .activation = activation(reader, {"activation_function"}, "gelu_new"),
          .dropout =
              readDropouts(reader, {"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}, {"resid_pdrop", 0.1}),
          .epsilon = reader.positiveOr({"layer_norm_epsilon"}, 1e-5),
          .causal = true,
          .scaleScores = reader.flag("scale_attn_weights", true)};
}

/// Of each layer in order whether it is local, as GPT-Neo's `attention_layers` (["global", "local",
/// ...]) and `attention_types` ([[["global", "local"], 12]]) name them.
std::vector<bool> gptNeoKinds(ConfigReader &reader) {
  std::vector<bool> kinds;
  for (const char *key : {"attention_types", "attention_layers"}) {
    const nlohmann::json *value = reader.find(key);
    if (!value) continue;
    std::vector<bool> own;
    const auto takeKind = [&](const nlohmann::json &kind) {
      if (kind != "global" && kind != "local")
        throw reader.error(ErrorKind::unsupported, key, "supported are \"global\" and \"local\"");
      own.push_back(kind == "local");
    };
    if (!value->is_array()) throw reader.error(ErrorKind::badInput, key, "must be a list");
    for (const nlohmann::json &entry : *value) {
      if (!entry.is_array()) takeKind(entry);
      else if (entry.size() == 2 && entry[0].is_array() && entry[1].is_number_integer() &&
               entry[1] > 0 && entry[1] <= mostListedLayers)
        for (int64_t time = 0; time < entry[1].get<int64_t>(); ++time)
          std::ranges::for_each(entry[0], takeKind);
      else
        throw reader.error(ErrorKind::badInput, key,
                           "must hold kinds of layers and how often, as [[\"global\"], 24]");
    }
    if (!kinds.empty() && !own.empty() && own != kinds)
      throw reader.error(ErrorKind::badInput, key, "contradicts 'attention_types'");
    if (!own.empty()) kinds = std::move(own);
  }
  if (!kinds.empty()) return kinds;
  reader.assume("attention_types", "global and local");
  return {false, true};
}

/// Windows of layers of which some see all and some as many keys: 0 is all. One layer alone is the
/// first kind that sees all, if any.
void setLayerWindows(ConfigReader &reader, LayerSpecification &specification,
                     const std::vector<bool> &isLocal, int64_t window, const char *all,
                     const char *local) {
  const auto locals = std::ranges::count(isLocal, true);
  if (locals == 0) return;
  if (locals == long(isLocal.size())) {
    specification.window = window;
    return;
  }
  for (const bool one : isLocal) specification.layerWindows.push_back(one ? window : 0);
  const std::string note =
      fmt::format("layers are {0} and {1}; one alone is the {0} one", all, local);
  reader.note(window == 1 ? note
                          : fmt::format("{}, and with --mask window={} the {} one", note,
                                        window - 1, local));
}

/// A local query sees `window_size` keys with its own.
LayerSpecification readGptNeo(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_heads", "num_attention_heads"});
  requireMultiple(reader, "hidden_size", hidden, "num_heads", heads);
  const std::vector<bool> kinds = gptNeoKinds(reader);
  const int64_t window = reader.integerOr("window_size", 256).value_or(256);
  LayerSpecification specification{
      .family = Family::decoder,
      .dims = {{"b", 1},
               {"j", 2048},
               {"h", heads},
               {"i", hidden},
               {"u", reader.integer({"intermediate_size"}).value_or(4 * hidden)}},
      .activation = activation(reader, {"activation_function"}, "gelu_new"),
      .dropout = readDropouts(reader, {"embed_dropout"}, {"attention_dropout"}, {"resid_dropout"}),
      .epsilon = reader.positiveOr({"layer_norm_epsilon"}, 1e-5),
      .projectionBias = false,
      .causal = true,
      .scaleScores = false};
  setLayerWindows(reader, specification, kinds, window, "global", "local");
  return specification;
}

/// Tiles of random columns are drawn by weft's own generator: which, no file says.
LayerSpecification readBigBird(ConfigReader &reader) {
  const std::string type = reader.text({"attention_type"}, "block_sparse");
  if (type != "block_sparse" && type != "original_full")
    throw reader.error(ErrorKind::unsupported, "attention_type",
                       "supported are \"block_sparse\" and \"original_full\"");
  const bool isSparse = type == "block_sparse", bias = reader.flag("use_bias", true);
  if (isSparse) reader.rejectFlag("is_decoder", "block-sparse decoders are not supported");
  LayerSpecification specification = readBert(reader, "gelu_new");
  specification.projectionBias = bias;
  specification.dims["b"] = 1, specification.dims["j"] = 4096;
  const int64_t block = reader.integerOr("block_size", 64).value_or(64),
                random = reader.integerOr("num_random_blocks", 3).value_or(3);
  if (!isBlockSize(block))
    throw reader.error(ErrorKind::unsupported, "block_size", "supported are 16, 32, 64 and 128");
  if (!isSparse) return specification;
  specification.dropout.probabilities =
      0;  // the published code drops those of full attention alone
  specification.blocks =
      fmt::format("bigbird(block={},window=3,global=2,random={},seed=0,heads=each)", block, random);
  reader.note(
      "no file says which random tiles there are; these are drawn with seed 0, and a .npy file of "
      "those of a checkpoint goes with \"attention_type\": \"original_full\" and --mask FILE.npy");
  return specification;
}

/// Keys on both sides together, of every layer.
int64_t longformerWindow(ConfigReader &reader) {
  constexpr const char *key = "attention_window";
  constexpr int64_t usual = 512;
  const nlohmann::json *value = reader.find(key);
  if (!value) {
    reader.assume(key, std::to_string(usual));
    return usual;
  }
  const nlohmann::json one = value->is_array() && !value->empty() ? value->front() : *value;
  if (value->is_array())
    for (const nlohmann::json &other : *value)
      if (other != one)
        throw reader.error(ErrorKind::unsupported, key,
                           "windows that differ by layer are not supported; one number builds the "
                           "layer that has it");
  if (!one.is_number_integer() || one.get<int64_t>() < 2 || one.get<int64_t>() % 2 != 0)
    throw reader.error(ErrorKind::badInput, key, "must be an even number of keys, at least 2");
  return one.get<int64_t>();
}

LayerSpecification readLongformer(ConfigReader &reader) {
  LayerSpecification specification = readBert(reader, "gelu");
  reader.rejectFlag("is_decoder", "causal layers of longformer are not supported");
  reader.rejectFlag("autoregressive", "autoregressive windows are not supported");
  if (reader.text({"attention_mode"}, "longformer") != "longformer")
    throw reader.error(ErrorKind::unsupported, "attention_mode", "supported is \"longformer\"");
  if (const nlohmann::json *dilation = reader.find("attention_dilation"))
    for (const nlohmann::json &one : dilation->is_array() ? *dilation : nlohmann::json{*dilation})
      if (one != 1)
        throw reader.error(ErrorKind::unsupported, "attention_dilation", "supported is 1");
  specification.dims["b"] = 1, specification.dims["j"] = 4096, specification.dims["a"] = 1;
  specification.window = longformerWindow(reader) / 2 + 1;
  specification.globalPositions = true;
  reader.note("the first position is global; --dim a=N makes the first N so");
  return specification;
}

/// Slopes in the place of a table of positions (ALiBi). The feed-forward is four times as wide as
/// the stream, whatever a key says.
LayerSpecification readBloom(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"n_embed", "hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads", "n_head"});
  requireMultiple(reader, "n_embed", hidden, "num_attention_heads", heads);
  reader.rejectFlag("apply_residual_connection_post_layernorm",
                    "residuals that are normalized streams are not supported");
  Dropouts dropout = readDropouts(reader, {"hidden_dropout"}, {"attention_dropout"});
  dropout.embedding = 0;
  return {.family = Family::decoder,
          .dims = {{"b", 1}, {"j", 2048}, {"h", heads}, {"i", hidden}, {"u", 4 * hidden}},
          .activation = Activation::geluTanh,
          .dropout = dropout,
          .epsilon = reader.positiveOr({"layer_norm_epsilon"}, 1e-5),
          .causal = true,
          .score = {.alibi = 8}};
}

/// The object `attn_config` of MPT: the steepness of its slopes and dropout of probabilities.
struct MptAttention {
  double steepness = 8, dropout = 0;
};
MptAttention mptAttention(ConfigReader &reader) {
  MptAttention usual;
  const nlohmann::json *object = reader.find("attn_config");
  if (!object) {
    reader.assume("attn_config.alibi", "true");
    return usual;
  }
  if (!object->is_object())
    throw reader.error(ErrorKind::badInput, "attn_config", "must be an object");
  ConfigReader inner(object->dump(), reader.where() + ": attn_config");
  if (!inner.flag("alibi", true))
    throw inner.error(ErrorKind::unsupported, "alibi",
                      "learned positions of mpt are not supported; supported is true");
  if (inner.text({"attn_type"}, "multihead_attention") != "multihead_attention")
    throw inner.error(ErrorKind::unsupported, "attn_type", "supported is \"multihead_attention\"");
  inner.rejectFlag("prefix_lm", "a prefix that is seen from everywhere is not supported");
  inner.rejectFlag("qk_ln", "normalized queries and keys are not supported");
  inner.rejectFlag("attn_uses_sequence_id", "several sequences in one are not supported");
  inner.rejectValue("clip_qkv", "clipped projections are not supported; supported is null");
  inner.rejectValue("softmax_scale", "another scale of scores is not supported; supported is null");
  const MptAttention attention{.steepness = inner.positive({"alibi_bias_max"}, usual.steepness),
                               .dropout = inner.probability("attn_pdrop", usual.dropout)};
  inner.find("attn_impl");  // how it is computed
  if (const std::vector<std::string> others = inner.unread(); !others.empty())
    throw reader.error(ErrorKind::unsupported, "attn_config",
                       fmt::format("unsupported: {}", fmt::join(others, ", ")));
  return attention;
}

LayerSpecification readMpt(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"d_model", "hidden_size"}),
                heads = reader.requiredInteger({"n_heads", "num_attention_heads"}),
                expansion = reader.integerOr("expansion_ratio", 4).value_or(4);
  requireMultiple(reader, "d_model", hidden, "n_heads", heads);
  if (!reader.flag("no_bias", true))
    throw reader.error(ErrorKind::unsupported, "no_bias", "biases of mpt are not supported");
  const std::string norm = reader.text({"norm_type"}, "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm")
    throw reader.error(ErrorKind::unsupported, "norm_type",
                       "supported are \"low_precision_layernorm\" and \"layernorm\"");
  const MptAttention attention = mptAttention(reader);
  const double stream = reader.probability("resid_pdrop", 0);
  return {.family = Family::decoder,
          .dims = {{"b", 1}, {"j", 2048}, {"h", heads}, {"i", hidden}, {"u", expansion * hidden}},
          .activation = Activation::gelu,
          .dropout = {.embedding = reader.probability("emb_pdrop", 0),
                      .probabilities = attention.dropout,
                      .attention = stream,
                      .feedForward = stream},
          .epsilon = reader.positiveOr({"layer_norm_epsilon"}, 1e-5),
          .projectionBias = false,
          .outputBias = false,
          .feedForwardBias = false,
          .causal = true,
          .normBias = false,
          .score = {.alibi = attention.steepness}};
}

/// What `feed_forward_proj` says: "relu", "gated-gelu". Newer files say the same twice.
void readT5FeedForward(ConfigReader &reader, LayerSpecification &specification) {
  // T5 means the approximation by tanh where it says gelu behind a gate.
  static const std::map<std::string, std::pair<Activation, bool>> known = {
      {"relu", {Activation::relu, false}},
      {"gelu", {Activation::gelu, false}},
      {"gated-gelu", {Activation::geluTanh, true}},
      {"gated-relu", {Activation::relu, true}},
      {"gated-silu", {Activation::silu, true}}};
  const std::string name = reader.text({"feed_forward_proj"}, "relu");
  const auto at = known.find(name);
  if (at == known.end()) {
    std::vector<std::string> names;
    for (const auto &[spelling, value] : known) names.push_back(spelling);
    throw reader.error(ErrorKind::unsupported, "feed_forward_proj",
                       fmt::format("unknown feed-forward{}", nearestAndKnown(name, names)));
  }
  specification.activation = at->second.first;
  specification.gatedFeedForward = at->second.second;
  static const std::map<Activation, std::string> spelled = {{Activation::relu, "relu"},
                                                            {Activation::gelu, "gelu"},
                                                            {Activation::geluTanh, "gelu_new"},
                                                            {Activation::silu, "silu"}};
  const std::string &usual = spelled.at(specification.activation);
  if (reader.text({"dense_act_fn"}, usual) != usual)
    throw reader.error(ErrorKind::badInput, "dense_act_fn",
                       fmt::format("contradicts 'feed_forward_proj' = \"{}\"", name));
  if (reader.flag("is_gated_act", specification.gatedFeedForward) != specification.gatedFeedForward)
    throw reader.error(ErrorKind::badInput, "is_gated_act",
                       fmt::format("contradicts 'feed_forward_proj' = \"{}\"", name));
}

/// A file has both stacks: its encoder layer, or with is_decoder its decoder layer.
LayerSpecification readT5(ConfigReader &reader) {
  if (!reader.has("is_decoder")) reader.assume("is_decoder", "false");
  const bool isDecoder = reader.flag("is_decoder", false);
  const int64_t buckets = reader.integerOr("relative_attention_num_buckets", 32).value_or(32),
                distance = reader.integerOr("relative_attention_max_distance", 128).value_or(128);
  const int64_t own =
      bucketsOfDirection(isDecoder ? BucketKind::causal : BucketKind::bidirectional, buckets);
  if (own < 2 || (!isDecoder && buckets % 2 != 0))
    throw reader.error(ErrorKind::badInput, "relative_attention_num_buckets",
                       "must leave each direction equally many buckets, at least 2");
  if (distance <= own / 2)
    throw reader.error(
        ErrorKind::badInput, "relative_attention_max_distance",
        fmt::format("must be larger than the {} distances that have a bucket each", own / 2));
  LayerSpecification specification{
      .family = Family::t5,
      .dims = {{"b", 8},
               {"j", 512},
               {"h", reader.requiredInteger({"num_heads"})},
               {"p", reader.requiredInteger({"d_kv"})},
               {"i", reader.requiredInteger({"d_model"})},
               {"u", reader.requiredInteger({"d_ff"})},
               {"n", buckets}},
      .dropout = Dropouts::everywhere(reader.probability("dropout_rate", 0.1)),
      .epsilon = reader.positiveOr({"layer_norm_epsilon"}, 1e-6),
      .projectionBias = false,
      .outputBias = false,
      .feedForwardBias = false,
      .causal = isDecoder,
      .scaleScores = false,
      .crossAttention = isDecoder,
      .score = {.relative = distance, .hasBuckets = true, .hasCausalBuckets = isDecoder}};
  readT5FeedForward(reader, specification);
  return specification;
}

/// What an object of rotary settings says of frequencies: the plain ones, all divided by a factor,
/// or Llama 3.1's.
RotaryScaling rotaryScaling(ConfigReader &reader, const char *key, ConfigReader &inner) {
  const std::string type = inner.text({"rope_type", "type"}, "default");
  if (type == "default") return {};
  if (type != "linear" && type != "llama3")
    throw reader.error(ErrorKind::unsupported, key,
                       "supported are the rope_type \"default\", \"linear\" and \"llama3\"");
  const auto number = [&](const char *name) {
    if (!inner.has(name)) throw inner.error(ErrorKind::badInput, name, "is missing");
    return inner.positive({name}, 1);
  };
  RotaryScaling scaling{.factor = number("factor")};
  if (type == "linear") return scaling;
  scaling.original = inner.requiredInteger({"original_max_position_embeddings"});
  scaling.low = number("low_freq_factor");
  scaling.high = number("high_freq_factor");
  if (scaling.high <= scaling.low)
    throw inner.error(ErrorKind::badInput, "high_freq_factor",
                      fmt::format("must be above 'low_freq_factor' = {}", scaling.low));
  return scaling;
}

void rejectUnread(const ConfigReader &reader, const char *key, const ConfigReader &inner) {
  if (const std::vector<std::string> others = inner.unread(); !others.empty())
    throw reader.error(ErrorKind::unsupported, key,
                       fmt::format("unsupported: {}", fmt::join(others, ", ")));
}

/// Newer files put the rotary settings into one object, older ones their scaling.
void readRotary(ConfigReader &reader, LayerSpecification &specification, bool mayBePartial) {
  constexpr double usual = 10000;
  constexpr const char *baseKey = "rope_theta", *shareKey = "partial_rotary_factor",
                       *oldKey = "rope_scaling", *newKey = "rope_parameters";
  double share = reader.positive({shareKey}, 1);
  const auto objectOf = [&](const char *key) -> std::optional<ConfigReader> {
    const nlohmann::json *object = reader.find(key);
    if (!object) return std::nullopt;
    if (!object->is_object()) throw reader.error(ErrorKind::badInput, key, "must be an object");
    return ConfigReader(object->dump(), fmt::format("{}: {}", reader.where(), key));
  };
  if (std::optional<ConfigReader> scaling = objectOf(oldKey)) {
    specification.rotaryScaling = rotaryScaling(reader, oldKey, *scaling);
    rejectUnread(reader, oldKey, *scaling);
  }
  std::optional<ConfigReader> inner = objectOf(newKey);
  if (!inner) {
    specification.rotaryBase = reader.positiveOr({baseKey}, usual);
  } else {
    const RotaryScaling own = rotaryScaling(reader, newKey, *inner);
    if (own != RotaryScaling() && specification.rotaryScaling != RotaryScaling() &&
        own != specification.rotaryScaling)
      throw reader.error(ErrorKind::badInput, oldKey, "contradicts 'rope_parameters'");
    if (own != RotaryScaling()) specification.rotaryScaling = own;
    const nlohmann::json *outerBase = reader.find(baseKey), *innerBase = inner->find(baseKey);
    if (outerBase && innerBase && *outerBase != *innerBase)
      throw reader.error(
          ErrorKind::badInput, baseKey,
          fmt::format("contradicts 'rope_parameters.rope_theta' = {}", innerBase->dump()));
    specification.rotaryBase =
        innerBase ? inner->positive({baseKey}, usual) : reader.positiveOr({baseKey}, usual);
    share = inner->positive({shareKey}, share);
    rejectUnread(reader, newKey, *inner);
  }
  if (share > 1 || (share != 1 && !mayBePartial))
    throw reader.error(share > 1 ? ErrorKind::badInput : ErrorKind::unsupported, shareKey,
                       mayBePartial ? "must be at most 1" : "only 1 is supported");
  specification.rotaryShare = share;
}

/// Of each layer in order whether its queries see a window alone; empty: no key says.
std::vector<bool> layerTypes(ConfigReader &reader) {
  constexpr const char *key = "layer_types";
  const nlohmann::json *kinds = reader.find(key);
  std::vector<bool> isLocal;
  if (!kinds) return isLocal;
  if (!kinds->is_array()) throw reader.error(ErrorKind::badInput, key, "must be a list");
  for (const nlohmann::json &kind : *kinds) {
    if (kind != "full_attention" && kind != "sliding_attention")
      throw reader.error(ErrorKind::unsupported, key,
                         "supported are \"full_attention\" and \"sliding_attention\"");
    isLocal.push_back(kind == "sliding_attention");
  }
  return isLocal;
}

/// Per-layer kinds of attention of a family whose layers are all plain.
void rejectMixedLayers(ConfigReader &reader) {
  for (const bool isLocal : layerTypes(reader))
    if (isLocal)
      throw reader.error(ErrorKind::unsupported, "layer_types",
                         "only \"full_attention\" layers are supported");
}

/// `usualGroups`: of a file without num_key_value_heads; nothing: one for each head. A null value
/// means one for each head in every family. `usualHeadDim`: likewise of head_dim; nothing: the
/// hidden size is divided.
LayerSpecification readLlamaLike(ConfigReader &reader, std::optional<int64_t> usualGroups = {},
                                 std::optional<int64_t> usualHeadDim = {},
                                 bool mayBePartial = false) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads"});
  const int64_t groups =
      reader.integerOr("num_key_value_heads", usualGroups.value_or(heads)).value_or(heads);
  requireMultiple(reader, "num_attention_heads", heads, "num_key_value_heads", groups);
  const auto headDim =
      usualHeadDim ? reader.integerOr("head_dim", *usualHeadDim) : reader.integer({"head_dim"});
  if (!headDim) requireMultiple(reader, "hidden_size", hidden, "num_attention_heads", heads);
  const bool bias = reader.flag("attention_bias", false);
  LayerSpecification specification{
      .family = Family::llama,
      .dims = {{"b", 1},
               {"j", 2048},
               {"h", heads},
               {"g", groups},
               {"p", headDim.value_or(hidden / heads)},
               {"i", hidden},
               {"u", reader.requiredInteger({"intermediate_size"})}},
      .activation = activation(reader, {"hidden_act"}, "silu"),
      .dropout = {.probabilities = reader.probability("attention_dropout", 0)},
      .epsilon = reader.positiveOr({"rms_norm_eps"}, 1e-6),
      .projectionBias = bias,
      .outputBias = bias,
      .feedForwardBias = reader.flag("mlp_bias", false),
      .causal = true};
  readRotary(reader, specification, mayBePartial);
  return specification;
}

LayerSpecification readLlama(ConfigReader &reader) {
  reader.rejectValue(
      "sliding_window",
      "a llama layer attends to all earlier keys; windows belong to model_type \"mistral\"");
  rejectMixedLayers(reader);
  return readLlamaLike(reader);
}

/// Llama with a sliding window; no biases. What the family takes for missing keys: a window of 4096
/// and 8 key/value heads.
LayerSpecification readMistral(ConfigReader &reader) {
  const auto window = reader.integerOr("sliding_window", 4096);
  rejectMixedLayers(reader);
  LayerSpecification specification = readLlamaLike(reader, 8);
  specification.window = window;
  return specification;
}

/// With use_sliding_window, the layers from max_window_layers on are local, or those that
/// layer_types names.
void readQwenWindows(ConfigReader &reader, LayerSpecification &specification) {
  if (!reader.flag("use_sliding_window", false)) return rejectMixedLayers(reader);
  const auto window = reader.integerOr("sliding_window", 4096);
  std::vector<bool> isLocal = layerTypes(reader);
  if (!window) return;
  if (isLocal.empty()) {
    const int64_t first = reader.integer({"max_window_layers"}, 0).value_or(28);
    int64_t layers = sizeBesideLayers(reader, layerCountKeys());
    if (layers == 0 || layers > mostListedLayers) layers = first + 1;
    if (first > mostListedLayers)
      throw reader.error(ErrorKind::badInput, "max_window_layers",
                         fmt::format("is more than {}", mostListedLayers));
    for (int64_t layer = 0; layer < layers; ++layer) isLocal.push_back(layer >= first);
  }
  if (std::ranges::count(isLocal, true) == 0) reader.note("no layer has a sliding window");
  setLayerWindows(reader, specification, isLocal, *window, "full", "sliding");
}

/// Llama with biases on q, k and v alone, whatever a key says, and 32 key/value heads where none
/// does.
LayerSpecification readQwen2(ConfigReader &reader) {
  if (reader.has("attention_bias"))
    throw reader.error(ErrorKind::unsupported, "attention_bias",
                       "is no setting of qwen2, whose q, k and v always have biases and whose "
                       "output projection has none");
  LayerSpecification specification = readLlamaLike(reader, 32);
  specification.projectionBias = true;
  readQwenWindows(reader, specification);
  return specification;
}

/// Llama whose query and key heads are normalized before they turn, of 128 elements where no key
/// says.
LayerSpecification readQwen3(ConfigReader &reader) {
  LayerSpecification specification = readLlamaLike(reader, 32, 128);
  specification.normalizesHeads = true;
  readQwenWindows(reader, specification);
  return specification;
}

/// Llama with tanh GELU and heads of 256 elements where no key says; tokens' rows are scaled. Norms
/// multiply with 1 + w, which `gamma` holds.
LayerSpecification readGemma(ConfigReader &reader) {
  rejectMixedLayers(reader);
  LayerSpecification specification = readLlamaLike(reader, {}, 256);
  constexpr const char *key = "hidden_activation";
  // Files of the family that say gelu mean the approximation.
  specification.activation = reader.has(key) && !reader.value(key).is_null()
                                 ? activation(reader, {key}, "gelu_pytorch_tanh")
                             : specification.activation == Activation::gelu
                                 ? Activation::geluTanh
                                 : specification.activation;
  if (!reader.has("hidden_act")) specification.activation = Activation::geluTanh;
  return specification;
}

/// Llama with a sliding window where a key says so and dropout of the stream; a part of each head
/// may turn.
LayerSpecification readPhi3(ConfigReader &reader) {
  rejectMixedLayers(reader);
  const auto window = reader.integer({"sliding_window"});
  LayerSpecification specification = readLlamaLike(reader, {}, {}, true);
  specification.dropout =
      readDropouts(reader, {"embd_pdrop"}, {"attention_dropout"}, {"resid_pdrop"});
  specification.window = window;
  return specification;
}

/// Normalized before each block, ReLU, learned positions.
LayerSpecification readOpt(ConfigReader &reader) {
  const int64_t hidden = reader.requiredInteger({"hidden_size"}),
                heads = reader.requiredInteger({"num_attention_heads"});
  requireMultiple(reader, "hidden_size", hidden, "num_attention_heads", heads);
  const auto require = [&](const char *key) {
    if (!reader.flag(key, true))
      throw reader.error(ErrorKind::unsupported, key, "supported is true");
  };
  require("do_layer_norm_before");
  require("layer_norm_elementwise_affine");
  reader.rejectFlag("_remove_final_layer_norm", "models without a last norm are not supported");
  if (const auto columns = reader.integer({"word_embed_proj_dim"}); columns && *columns != hidden)
    throw reader.error(ErrorKind::unsupported, "word_embed_proj_dim",
                       fmt::format("supported is 'hidden_size' = {}", hidden));
  const bool bias = reader.flag("enable_bias", true);
  Dropouts dropout = readDropouts(reader, {"dropout", 0.1}, {"attention_dropout"});
  dropout.embedding = 0;
  return {.family = Family::decoder,
          .dims = {{"b", 1},
                   {"j", 2048},
                   {"h", heads},
                   {"i", hidden},
                   {"u", reader.requiredInteger({"ffn_dim", "intermediate_size"})}},
          .activation = activation(reader, {"activation_function"}, "relu"),
          .dropout = dropout,
          .projectionBias = bias,
          .outputBias = bias,
          .feedForwardBias = bias,
          .causal = true};
}

using FamilyReader = LayerSpecification (*)(ConfigReader &);
const std::map<std::string, FamilyReader> &familyReaders() {
  static const std::map<std::string, FamilyReader> readers = {{"albert", readAlbert},
                                                              {"bert", readPlainBert},
                                                              {"big_bird", readBigBird},
                                                              {"bloom", readBloom},
                                                              {"camembert", readPlainBert},
                                                              {"deberta", readDeberta},
                                                              {"distilbert", readDistilBert},
                                                              {"gemma", readGemma},
                                                              {"gpt2", readGpt2},
                                                              {"gpt_neo", readGptNeo},
                                                              {"llama", readLlama},
                                                              {"longformer", readLongformer},
                                                              {"mistral", readMistral},
                                                              {"mpt", readMpt},
                                                              {"opt", readOpt},
                                                              {"phi3", readPhi3},
                                                              {"qwen2", readQwen2},
                                                              {"qwen3", readQwen3},
                                                              {"roberta", readPlainBert},
                                                              {"t5", readT5},
                                                              {"xlm-roberta", readPlainBert}};
  return readers;
}

/// Families whose positions are rows of a learned table, and the key that says how many. Rotary
/// positions have no end.
Keys positionKeys(Family family) {
  if (family == Family::encoder) return {"max_position_embeddings"};
  if (family == Family::decoder) return {"n_positions", "max_position_embeddings"};
  return {};
}

/// Remembers the limit and keeps the default extent of j below it.
void readPositions(ConfigReader &reader, ConfigDescription &description) {
  if (description.specification.disentangled && !hasDebertaPositions(reader)) return;
  const Keys keys = positionKeys(description.specification.family);
  const auto count = keys.empty() ? std::nullopt : reader.integer(keys);
  if (!count) return;
  description.positionsKey = reader.find(keys.front()) ? keys.front() : keys.back();
  description.positions = *count;
  int64_t &steps = description.specification.dims["j"];
  steps = std::min(steps, *count);
}

bool tiesWeights(const ConfigReader &reader, bool absent) {
  constexpr const char *key = "tie_word_embeddings";
  return reader.has(key) && reader.value(key).is_boolean() ? reader.value(key).get<bool>() : absent;
}

/// RoBERTa and its relatives count positions from behind the id of the padding token, 1 in every
/// checkpoint whose names are known.
void setRobertaModel(const ConfigReader &reader, ModelSpecification &model, const char *names) {
  constexpr const char *key = "pad_token_id";
  const int64_t padding = reader.has(key) && reader.value(key).is_number_unsigned()
                              ? reader.value(key).get<int64_t>()
                              : 1;
  model.tokenTypes = sizeBesideLayers(reader, {"type_vocab_size"}, 2);
  model.hasPositions = model.hasPooler = true;
  model.firstPosition = padding + 1;
  model.weightNames = padding == 1 ? names : "";
}

/// What the model has beside its layers, of those types that are built as a whole.
ModelSpecification modelAround(const ConfigReader &reader, const std::string &modelType,
                               const LayerSpecification &layer) {
  ModelSpecification model{.layers = sizeBesideLayers(reader, layerCountKeys())};
  if (modelType == "t5") return model;
  model.vocabulary = sizeBesideLayers(reader, {"vocab_size"});
  if (modelType == "bert" || modelType == "big_bird") {
    model.tokenTypes = sizeBesideLayers(reader, {"type_vocab_size"}, 2);
    model.hasPositions = model.hasPooler = true;
    model.weightNames = "bert";
    if (modelType == "bert") return model;
    model.weightNames = "bigbird";
    model.dropsBeforeNorm = true;
    constexpr const char *key = "rescale_embeddings";
    if (reader.has(key) && reader.value(key) == true)
      model.embeddingScale = std::sqrt(double(layer.dims.at("i")));
  } else if (modelType == "roberta" || modelType == "camembert" || modelType == "xlm-roberta") {
    setRobertaModel(reader, model, "roberta");
  } else if (modelType == "longformer") {
    setRobertaModel(reader, model, "longformer");
  } else if (modelType == "albert") {
    model.tokenTypes = sizeBesideLayers(reader, {"type_vocab_size"}, 2);
    model.embedding = sizeBesideLayers(reader, {"embedding_size"}, 128);
    model.hasPositions = model.hasPooler = model.sharesLayers = true;
    model.weightNames = "albert";
  } else if (modelType == "deberta") {
    model.tokenTypes = sizeBesideLayers(reader, {"type_vocab_size"});
    model.hasPositions = hasDebertaPositions(reader);
    model.weightNames = "deberta";
  } else if (modelType == "distilbert") {
    model.hasPositions = true;
    model.weightNames = "distilbert";
  } else if (modelType == "gpt2" || modelType == "gpt_neo" || modelType == "opt") {
    model.hasPositions = model.hasLogits = true;
    model.weightNames = modelType == "gpt_neo" ? "gpt-neo" : modelType;
    model.isTied = tiesWeights(reader, true);
  } else if (modelType == "bloom" || modelType == "mpt") {
    model.hasLogits = true;
    model.normalizesEmbeddings = modelType == "bloom";
    model.weightNames = modelType;
    model.isTied = tiesWeights(reader, true);
  } else {
    const bool isGemma = modelType == "gemma";
    model.hasLogits = true;
    // Phi-3 stacks projections of different sizes, which has no name here.
    model.weightNames = isGemma ? "gemma" : modelType == "phi3" ? "" : "llama";
    model.isTied = tiesWeights(reader, isGemma);
    if (isGemma) model.embeddingScale = std::sqrt(double(layer.dims.at("i")));
  }
  return model;
}

/// The element type that the file names, in the spelling of PyTorch.
void readElementType(ConfigReader &reader, ConfigDescription &description) {
  static const std::map<std::string, DType> known = {
      {"bfloat16", DType::bf16}, {"float16", DType::f16}, {"float32", DType::f32}};
  const Keys keys = {"dtype", "torch_dtype"};
  const std::string text = reader.text(keys, "");
  if (text.empty()) return;
  description.elementTypeKey = reader.find("dtype") ? "dtype" : "torch_dtype";
  description.elementTypeName = text.starts_with("torch.") ? text.substr(6) : text;
  if (const auto at = known.find(description.elementTypeName); at != known.end())
    description.elementType = at->second;
}

std::string joinedValues(const std::vector<nlohmann::json> &values) {
  std::vector<std::string> texts;
  for (const nlohmann::json &value : values) texts.push_back(value.dump());
  return fmt::format("{}", fmt::join(texts, " or "));
}

Error unknownKey(const ConfigReader &reader, const std::string &key) {
  std::vector<std::string> known = listedKeys();
  for (const std::string &name : reader.keysRead()) known.push_back(name);
  const std::string near = nearest(key, known);
  return reader.error(
      ErrorKind::unsupported, key,
      fmt::format(
          "is not a known key and may change the mathematics of a layer{}; --allow-key {} builds "
          "the layer without it",
          near.empty() ? "" : fmt::format("; nearest is '{}'", near), key));
}

/// Of a key that no layer of the family has, as `layerdrop`, or of a head, which is not built.
void readOtherDropout(const ConfigReader &reader, const std::string &key, bool isOfHead,
                      ConfigDescription &description) {
  const nlohmann::json &value = reader.value(key);
  if (!value.is_null() && !isProbability(value))
    throw reader.error(ErrorKind::badInput, key, noProbability);
  const bool isOff = isOfHead || value.is_null() || value.get<double>() == 0;
  (isOff ? description.ignoredKeys : description.otherDropoutKeys).push_back(key);
}

/// Sorts what nobody read by what it means. Throws for what may change the mathematics.
void readRest(ConfigReader &reader, const std::string &modelType,
              const std::set<std::string> &allowed, ConfigDescription &description) {
  const Family family = description.specification.family;
  for (const std::string &key : reader.unread()) {
    switch (meaningOf(key, reader.value(key), modelType, family)) {
      case KeyMeaning::neutral:
      case KeyMeaning::settled: description.ignoredKeys.push_back(key); break;
      case KeyMeaning::dropout:
      case KeyMeaning::headDropout:
        readOtherDropout(
            reader, key,
            meaningOf(key, reader.value(key), modelType, family) == KeyMeaning::headDropout,
            description);
        break;
      case KeyMeaning::doubtful:
        if (!allowed.contains(key))
          throw reader.error(ErrorKind::unsupported, key,
                             fmt::format("{}; --allow-key {} builds the layer without it",
                                         doubtAbout(key, modelType), key));
        description.allowedKeys.push_back(key);
        break;
      case KeyMeaning::changes:
        throw reader.error(
            ErrorKind::unsupported, key,
            fmt::format("changes the mathematics of a layer and is not supported; supported is {}",
                        joinedValues(settledValues(key, family))));
      case KeyMeaning::unknown:
        if (!allowed.contains(key)) throw unknownKey(reader, key);
        description.allowedKeys.push_back(key);
    }
  }
  for (const std::string &key : allowed)
    if (!std::ranges::count(description.allowedKeys, key))
      throw Error::badInput(
          "--allow-key {}: {}", key,
          reader.has(key)
              ? fmt::format("'{}' is a key that weft knows; it is honoured or rejected", key)
              : fmt::format("{} has no such key{}", reader.where(),
                            nearestAndKnown(key, reader.keys())));
}

/// "bert-large" of models/bert-large.json; the model type where the file is plainly called
/// config.json.
std::string layerName(const std::string &where, const std::string &modelType) {
  const std::string stem = std::filesystem::path(where).stem().string();
  return stem.empty() || stem == "config" ? modelType : stem;
}

}  // namespace

const std::vector<std::string> &layerCountKeys() {
  static const std::vector<std::string> keys = {"num_hidden_layers", "n_layer", "n_layers",
                                                "num_layers"};
  return keys;
}

const std::vector<std::string> &wholeModelKeys() {
  static const std::vector<std::string> keys = {"embedding_size",     "pad_token_id",
                                                "rescale_embeddings", "tie_word_embeddings",
                                                "type_vocab_size",    "vocab_size"};
  return keys;
}

std::vector<std::string> supportedModelTypes() {
  std::vector<std::string> names;
  for (const auto &[name, reader] : familyReaders()) names.push_back(name);
  return names;
}

std::vector<ConfigFamily> configFamilies() {
  // Sizes that one reader or another cannot do without, those that families share before their own.
  const std::vector<std::pair<std::string, int64_t>> sizes = {{"hidden_size", 64},
                                                              {"num_attention_heads", 32},
                                                              {"intermediate_size", 128},
                                                              {"hidden_dim", 128},
                                                              {"dim", 64},
                                                              {"n_heads", 4},
                                                              {"n_embd", 64},
                                                              {"n_head", 4},
                                                              {"n_embed", 64},
                                                              {"d_model", 64},
                                                              {"ffn_dim", 128},
                                                              {"d_kv", 16},
                                                              {"d_ff", 128},
                                                              {"num_heads", 4}};
  std::vector<ConfigFamily> families;
  for (const auto &[modelType, read] : familyReaders()) {
    ConfigFamily family{.modelType = modelType, .family = {}, .keys = {}};
    std::set<std::string> asked;
    const auto reads = [&](const nlohmann::json &object) {
      try {
        ConfigReader reader(object.dump(), modelType);
        ConfigDescription description{.specification = read(reader)};
        readPositions(reader, description);
        family.family = description.specification.family;
        asked = reader.keysRead();
        return true;
      } catch (const Error &) {
        return false;
      }
    };
    nlohmann::json least = nlohmann::json::object();
    for (const auto &[key, value] : sizes) least[key] = value;
    for (const auto &[key, value] : sizes)
      if (nlohmann::json without = least; without.erase(key) > 0 && reads(without))
        least = std::move(without);
    if (!reads(least))
      throw Error::checkFailed("model_type \"{}\": no file of sizes alone describes it", modelType);
    for (const std::string &key : asked)
      family.keys.push_back({.name = key, .isRequired = least.contains(key)});
    families.push_back(std::move(family));
  }
  return families;
}

ConfigDescription parseConfig(std::string_view text, const std::string &where,
                              const std::set<std::string> &allowedKeys) {
  ConfigReader reader(text, where);
  const std::string modelType = reader.requiredText("model_type");
  const auto family = familyReaders().find(modelType);
  if (family == familyReaders().end())
    throw Error::unsupported("{}: key 'model_type' = \"{}\": unsupported model{}", where, modelType,
                             nearestAndKnown(modelType, supportedModelTypes()));
  rejectCommon(reader, modelType);
  ConfigDescription description;
  description.specification = family->second(reader);
  description.specification.name = layerName(where, modelType);
  description.specification.model = modelAround(reader, modelType, description.specification);
  readPositions(reader, description);
  readElementType(reader, description);
  readRest(reader, modelType, allowedKeys, description);
  description.dropout = std::exchange(description.specification.dropout, {});
  description.dropoutKeys = reader.probabilityKeys();
  std::ranges::sort(description.dropoutKeys);
  // The published code drops probabilities of full attention alone.
  if (constexpr const char *key = "attention_probs_dropout_prob";
      description.specification.blocks) {
    if (std::erase(description.dropoutKeys, key) > 0) description.ignoredKeys.push_back(key);
    std::erase_if(description.assumedDropouts,
                  [&](const std::string &text) { return text.starts_with(key); });
    std::ranges::sort(description.ignoredKeys);
  }
  description.assumed = reader.assumed();
  description.assumedDropouts = reader.assumedProbabilities();
  description.notes = reader.notes();
  return description;
}

void checkPositions(const ConfigDescription &description, const Dims &dims) {
  if (description.positionsKey.empty()) return;
  const int64_t first =
      description.specification.isWhole ? description.specification.model.firstPosition : 0;
  const std::string behind =
      first > 0 ? fmt::format(", of whose rows the first {} are of no position", first) : "";
  for (const char *axis : {"j", "k"})
    if (dims.at(axis) > description.positions - first)
      throw Error::badInput(
          "{}: dimension {}={} is larger than key '{}' = {}{}: later positions have no embedding",
          description.specification.name, axis, dims.at(axis), description.positionsKey,
          description.positions, behind);
}

ConfigDescription readConfig(const std::string &path, const std::set<std::string> &allowedKeys) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) throw Error::badInput("{}: there is no such file", path);
  if (std::filesystem::is_directory(status))
    throw Error::badInput("{}: is a folder, not a config.json", path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file) throw Error::badInput("{}: cannot be read", path);
  if (!(text << file.rdbuf())) throw Error::badInput("{}: is empty", path);
  return parseConfig(text.str(), path, allowedKeys);
}

}  // namespace weft::models
