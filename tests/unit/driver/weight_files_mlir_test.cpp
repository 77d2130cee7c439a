// Weights of published checkpoints: every parameter of a tiny model of each family finds its
// elements, in files of other element types, in shards and behind prefixes; what does not fit is
// named.
#include "tools/driver/WeightFiles.h"

#include "kernel/Error.h"
#include "kernel/reference/StoredElement.h"
#include "models/WeightNames.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tools/driver/LayeredModel.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

using namespace weft;
using namespace weft::driver;
using weft::test::nonEmpty;

namespace {

constexpr int64_t heads = 4, groups = 2, headSize = 8, hidden = 32, wide = 40, words = 24,
                  length = 8, rows = 12, narrow = 16, distances = 1024;

/// A file's tensor whose element (r, c) is a number that tells its name, row and column.
struct FileTensor {
  std::vector<int64_t> shape;
  double first = 0;
  double at(int64_t row, int64_t column) const {
    return first + double((row * (shape.size() > 1 ? shape[1] : 1) + column) % 512) / 8;
  }
};

using FileTensors = std::map<std::string, FileTensor>;

runtime::TensorToWrite stored(const std::string &name, const FileTensor &tensor, DType dtype) {
  runtime::TensorToWrite result{
      .name = name, .dtype = dtype, .shape = tensor.shape, .elements = {}};
  const int64_t columns = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
  result.elements.resize(size_t(tensor.shape[0] * columns * sizeOf(dtype)));
  for (int64_t n = 0; n < tensor.shape[0] * columns; ++n)
    reference::storeElement(dtype, result.elements.data() + n * sizeOf(dtype),
                            tensor.at(n / columns, n % columns));
  return result;
}

void write(const std::string &path, const FileTensors &tensors, DType dtype) {
  std::vector<runtime::TensorToWrite> list;
  for (const auto &[name, tensor] : tensors) list.push_back(stored(name, tensor, dtype));
  runtime::writeSafetensors(path, list);
}

/// Where models like BERT keep what a layer has.
struct EncoderNames {
  std::string embeddings, layer, query, key, value, output, norm1, up, down, norm2;
};
const std::map<std::string, EncoderNames> encoders = {
    {"bert",
     {"bert.embeddings", "bert.encoder.layer.{}.", "attention.self.query", "attention.self.key",
      "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
      "intermediate.dense", "output.dense", "output.LayerNorm"}},
    {"albert",
     {"albert.embeddings", "albert.encoder.albert_layer_groups.0.albert_layers.0.",
      "attention.query", "attention.key", "attention.value", "attention.dense",
      "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"}},
    {"deberta",  // queries, keys and values: one tensor
     {"deberta.embeddings", "deberta.encoder.layer.{}.", "", "", "", "attention.output.dense",
      "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"}},
    {"distilbert",
     {"distilbert.embeddings", "distilbert.transformer.layer.{}.", "attention.q_lin",
      "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1",
      "ffn.lin2", "output_layer_norm"}},
    {"bigbird",
     {"bert.embeddings", "bert.encoder.layer.{}.", "attention.self.query", "attention.self.key",
      "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
      "intermediate.dense", "output.dense", "output.LayerNorm"}},
    {"longformer",
     {"longformer.embeddings", "longformer.encoder.layer.{}.", "attention.self.query",
      "attention.self.key", "attention.self.value", "attention.output.dense",
      "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"}},
    {"roberta",
     {"roberta.embeddings", "roberta.encoder.layer.{}.", "attention.self.query",
      "attention.self.key", "attention.self.value", "attention.output.dense",
      "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"}}};

/// Where decoders keep what a layer has: one projection of queries, keys and values, or with "{}"
/// three.
struct DecoderNames {
  std::string tokens, layer, norm1, projections, output, norm2, up, down, lastNorm;
  bool projectionBias = true, bias = true;
};
const std::map<std::string, DecoderNames> decoders = {
    {"gpt2",
     {"wte", "h.{}.", "ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj",
      "ln_f"}},
    {"gpt-neo",
     {"transformer.wte", "transformer.h.{}.", "ln_1", "attn.attention.{}_proj",
      "attn.attention.out_proj", "ln_2", "mlp.c_fc", "mlp.c_proj", "transformer.ln_f", false}},
    {"bloom",
     {"word_embeddings", "h.{}.", "input_layernorm", "self_attention.query_key_value",
      "self_attention.dense", "post_attention_layernorm", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h",
      "ln_f"}},
    {"mpt",
     {"transformer.wte", "transformer.blocks.{}.", "norm_1", "attn.Wqkv", "attn.out_proj", "norm_2",
      "ffn.up_proj", "ffn.down_proj", "transformer.norm_f", false, false}},
    {"opt",
     {"model.decoder.embed_tokens", "model.decoder.layers.{}.", "self_attn_layer_norm",
      "self_attn.{}_proj", "self_attn.out_proj", "final_layer_norm", "fc1", "fc2",
      "model.decoder.final_layer_norm"}}};

bool isLlama(const std::string &family) {
  return family == "llama" || family == "gemma" || family == "qwen3";
}

bool startsBehindPadding(const std::string &family) {
  return family == "roberta" || family == "longformer" || family == "opt";
}

std::string rootOfLayer(const std::string &pattern, int layer) {
  return fmt::format(fmt::runtime(pattern), layer);
}

/// What a checkpoint of two layers holds.
FileTensors checkpoint(const std::string &family) {
  FileTensors all;
  double next = 0;
  const auto add = [&](const std::string &name, std::vector<int64_t> shape) {
    all[name] = {.shape = std::move(shape), .first = ++next};
  };
  const auto norm = [&](const std::string &name, int64_t columns = hidden) {
    add(name + ".weight", {columns});
    if (!isLlama(family) && family != "mpt") add(name + ".bias", {columns});
  };
  const auto linear = [&](const std::string &name, int64_t outputs, int64_t inputs,
                          bool hasBias = true) {
    const bool isTransposed = family == "gpt2";  // its Conv1D has inputs first
    add(name + ".weight", isTransposed ? std::vector<int64_t>{inputs, outputs}
                                       : std::vector<int64_t>{outputs, inputs});
    if (!isLlama(family) && family != "mpt" && hasBias) add(name + ".bias", {outputs});
  };
  const auto encoder = encoders.find(family);
  const auto decoder = decoders.find(family);
  if (encoder != encoders.end()) {
    const std::string &root = encoder->second.embeddings;
    const int64_t columns = family == "albert" ? narrow : hidden;
    add(root + ".word_embeddings.weight", {words, columns});
    if (family != "deberta") add(root + ".position_embeddings.weight", {rows, columns});
    if (family != "distilbert" && family != "deberta")
      add(root + ".token_type_embeddings.weight", {2, columns});
    norm(root + ".LayerNorm", columns);
    if (family == "deberta") add("deberta.encoder.rel_embeddings.weight", {distances, hidden});
    if (family == "albert") linear("albert.encoder.embedding_hidden_mapping_in", hidden, narrow);
    // Of another head.
    add(family == "albert"       ? "predictions.bias"
        : family == "deberta"    ? "lm_predictions.lm_head.bias"
        : family == "distilbert" ? "vocab_projector.bias"
                                 : "cls.predictions.bias",
        {words});
  } else if (decoder != decoders.end()) {
    add(decoder->second.tokens + ".weight", {words, hidden});
    if (family == "gpt2") add("wpe.weight", {rows, hidden});
    if (family == "gpt-neo") add("transformer.wpe.weight", {rows, hidden});
    if (family == "opt") add("model.decoder.embed_positions.weight", {rows, hidden});
    if (family == "bloom") norm("word_embeddings_layernorm");
    norm(decoder->second.lastNorm);
  } else {
    add("model.embed_tokens.weight", {words, hidden});
    add("lm_head.weight", {words, hidden});
    norm("model.norm");
  }
  for (const int layer : {0, 1}) {
    if (encoder != encoders.end()) {
      const EncoderNames &names = encoder->second;
      const std::string at = rootOfLayer(names.layer, layer);
      if (all.contains(at + names.query + ".weight")) continue;  // shared
      if (family == "deberta") {
        add(at + "attention.self.in_proj.weight", {3 * hidden, hidden});
        add(at + "attention.self.q_bias", {hidden});
        add(at + "attention.self.v_bias", {hidden});
        add(at + "attention.self.pos_proj.weight", {hidden, hidden});
        linear(at + "attention.self.pos_q_proj", hidden, hidden);
        linear(at + names.output, hidden, hidden);
      } else {
        for (const std::string &name : {names.query, names.key, names.value, names.output})
          linear(at + name, hidden, hidden);
      }
      norm(at + names.norm1);
      linear(at + names.up, wide, hidden);
      linear(at + names.down, hidden, wide);
      norm(at + names.norm2);
      if (family == "longformer")
        for (const std::string &name : {names.query, names.key, names.value})
          linear(at + name + "_global", hidden, hidden);
    } else if (decoder != decoders.end()) {
      const DecoderNames &names = decoder->second;
      const std::string at = rootOfLayer(names.layer, layer);
      norm(at + names.norm1);
      if (names.projections.find("{}") == std::string::npos)
        linear(at + names.projections, 3 * hidden, hidden, names.projectionBias);
      else
        for (const char *kind : {"q", "k", "v"})
          linear(at + fmt::format(fmt::runtime(names.projections), kind), hidden, hidden,
                 names.projectionBias);
      linear(at + names.output, hidden, hidden);
      norm(at + names.norm2);
      linear(at + names.up, wide, hidden);
      linear(at + names.down, hidden, wide);
    } else {
      const std::string at = fmt::format("model.layers.{}.", layer);
      norm(at + "input_layernorm");
      linear(at + "self_attn.q_proj", heads * headSize, hidden);
      linear(at + "self_attn.k_proj", groups * headSize, hidden);
      linear(at + "self_attn.v_proj", groups * headSize, hidden);
      linear(at + "self_attn.o_proj", hidden, heads * headSize);
      if (family == "qwen3")
        for (const char *name : {"q", "k"})
          add(at + fmt::format("self_attn.{}_norm.weight", name), {headSize});
      norm(at + "post_attention_layernorm");
      linear(at + "mlp.gate_proj", wide, hidden);
      linear(at + "mlp.up_proj", wide, hidden);
      linear(at + "mlp.down_proj", hidden, wide);
    }
  }
  if (family == "bert" || family == "longformer" || family == "roberta")
    linear(family + ".pooler.dense", hidden, hidden);
  if (family == "bigbird") linear("bert.pooler", hidden, hidden);
  if (family == "albert") linear("albert.pooler", hidden, hidden);
  return all;
}

std::vector<PlanTensor> parametersOf(const std::string &preset) {
  const test::TemporaryTestFolder folder;
  const std::string file = folder / "config.json";
  runtime::writeFile(file, R"({"model_type": ")" + preset + R"(", "hidden_size": 32,
      "vocab_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2,
      "max_position_embeddings": 12, )" +
                               (isLlama(preset)   ? R"("num_key_value_heads": 2, "head_dim": 8, )"
                                : preset == "opt" ? R"("ffn_dim": 40})"
                                                  : "") +
                               (preset == "opt" ? "" : R"("intermediate_size": 40})"));
  ModelFlags flags;
  const bool isFile =
      preset == "roberta" || preset == "opt" || preset == "gemma" || preset == "qwen3";
  flags.model = isFile ? file : preset;
  flags.part = "model";
  flags.layers = "2";
  flags.dtype = "f32";
  flags.dims = {"b=2", "j=8", "h=4", "i=32", "u=40", "v=24"};
  if (preset == "albert-base") flags.dims.push_back("d=16");
  if (preset == "longformer-large") flags.dims.insert(flags.dims.end(), {"a=2", "s=2"});
  if (preset == "llama-3-8b") flags.dims.insert(flags.dims.end(), {"g=2", "p=8"});
  ChoiceFlags choices;
  choices.stacking = StackingChoice::three;
  choices.chunks = 1;
  TargetFlags target;
  target.profile = "none";
  Compilation compilation(flags, choices, target);
  compilation.import();
  std::vector<PlanTensor> parameters;
  for (const PlanTensor &tensor :
       decideModel(compilation, Phase::import).decision.planned.plan.tensors)
    if (tensor.role == TensorRole::parameter) parameters.push_back(tensor);
  return parameters;
}

std::vector<const PlanTensor *> pointers(const std::vector<PlanTensor> &tensors) {
  std::vector<const PlanTensor *> all;
  for (const PlanTensor &tensor : tensors) all.push_back(&tensor);
  return all;
}

/// The element of a parameter at (p, h, i) and so on, by what the axes mean: the head's columns of
/// a projection lie side by side, query heads of a group too.
double elementOf(const std::string &family, const FileTensors &files, const PlanTensor &parameter,
                 const std::map<std::string, int64_t> &at) {
  const std::string name = parameter.logical;
  const bool hasLayer = name.starts_with("layer");
  const std::string bare = hasLayer ? name.substr(name.find('_') + 1) : name;
  const int layer = hasLayer ? name[5] - '1' : 0;
  static const std::set<std::string> aroundLayers = {
      "token_table", "position_table", "type_table",  "gamma0", "beta0",
      "w_embedding", "relative_table", "b_embedding", "w_pool", "b_pool"};
  const bool isOfLayer = hasLayer || (family == "albert" && !aroundLayers.contains(bare));
  const auto axis = [&](const char *letter) { return at.contains(letter) ? at.at(letter) : 0; };
  const int64_t size = headSize;
  const int64_t head = isLlama(family) && (bare == "wq" || bare == "wo")
                           ? axis("g") * (heads / groups) + axis("r")
                       : isLlama(family) ? axis("g")
                                         : axis("h");
  const int64_t column =
      head * size +
      (bare.starts_with("wv") || bare.starts_with("bv") || bare == "wo" ? axis("w") : axis("p"));
  const int64_t i = axis("i"), u = axis("u");
  const double normOffset = family == "gemma" ? 1 : 0;
  static const std::map<std::string, std::string> tables = {
      {"bert token_table", "bert.embeddings.word_embeddings.weight"},
      {"bert position_table", "bert.embeddings.position_embeddings.weight"},
      {"bert type_table", "bert.embeddings.token_type_embeddings.weight"},
      {"bert gamma0", "bert.embeddings.LayerNorm.weight"},
      {"bert beta0", "bert.embeddings.LayerNorm.bias"},
      {"bert w_pool", "bert.pooler.dense.weight"},
      {"bert b_pool", "bert.pooler.dense.bias"},
      {"albert token_table", "albert.embeddings.word_embeddings.weight"},
      {"albert position_table", "albert.embeddings.position_embeddings.weight"},
      {"albert type_table", "albert.embeddings.token_type_embeddings.weight"},
      {"albert gamma0", "albert.embeddings.LayerNorm.weight"},
      {"albert beta0", "albert.embeddings.LayerNorm.bias"},
      {"albert w_embedding", "albert.encoder.embedding_hidden_mapping_in.weight"},
      {"albert b_embedding", "albert.encoder.embedding_hidden_mapping_in.bias"},
      {"albert w_pool", "albert.pooler.weight"},
      {"albert b_pool", "albert.pooler.bias"},
      {"deberta token_table", "deberta.embeddings.word_embeddings.weight"},
      {"deberta gamma0", "deberta.embeddings.LayerNorm.weight"},
      {"deberta beta0", "deberta.embeddings.LayerNorm.bias"},
      {"deberta relative_table", "deberta.encoder.rel_embeddings.weight"},
      {"distilbert token_table", "distilbert.embeddings.word_embeddings.weight"},
      {"distilbert position_table", "distilbert.embeddings.position_embeddings.weight"},
      {"distilbert gamma0", "distilbert.embeddings.LayerNorm.weight"},
      {"distilbert beta0", "distilbert.embeddings.LayerNorm.bias"},
      {"bigbird w_pool", "bert.pooler.weight"},
      {"bigbird b_pool", "bert.pooler.bias"},
      {"opt position_table", "model.decoder.embed_positions.weight"},
      {"gpt-neo position_table", "transformer.wpe.weight"},
      {"bloom gamma0", "word_embeddings_layernorm.weight"},
      {"bloom beta0", "word_embeddings_layernorm.bias"},
      {"gpt2 token_table", "wte.weight"},
      {"gpt2 position_table", "wpe.weight"},
      {"gpt2 gamma_last", "ln_f.weight"},
      {"gpt2 beta_last", "ln_f.bias"},
      {"llama token_table", "model.embed_tokens.weight"},
      {"llama output_weight", "lm_head.weight"},
      {"llama gamma_last", "model.norm.weight"}};
  if (!isOfLayer) {
    const auto nameOf = [&]() -> std::string {
      if (const auto own = tables.find((isLlama(family) ? "llama" : family) + " " + bare);
          own != tables.end())
        return own->second;
      if (const auto decoder = decoders.find(family); decoder != decoders.end())
        return bare == "token_table"
                   ? decoder->second.tokens + ".weight"
                   : decoder->second.lastNorm + (bare == "beta_last" ? ".bias" : ".weight");
      const std::string ofBert = tables.at("bert " + bare);
      return (family == "bigbird" ? "bert" : family) + ofBert.substr(ofBert.find('.'));
    };
    const FileTensor &tensor = files.at(nameOf());
    // Each has one of these axes in front, and behind it d, or i.
    const int64_t behindPadding = bare == "position_table" && startsBehindPadding(family) ? 2 : 0;
    const int64_t row = axis("e") + axis("v") + axis("j") + axis("s") + axis("n") + behindPadding;
    if (tensor.shape.size() == 1) return tensor.at(row + axis("d") + i, 0) + normOffset;
    return bare == "w_embedding" ? tensor.at(i, axis("d")) : tensor.at(row, axis("d") + i);
  }
  const bool isBias = bare.starts_with("b") && !bare.starts_with("beta");
  const auto value = [&](const std::string &module, int64_t output, int64_t input) {
    const FileTensor &tensor = files.at(module + (isBias ? ".bias" : ".weight"));
    if (isBias) return tensor.at(output, 0);
    return family == "gpt2" ? tensor.at(input, output) : tensor.at(output, input);
  };
  const auto normed = [&](const std::string &module) {
    return files.at(module + (bare.starts_with("beta") ? ".bias" : ".weight")).at(i, 0) +
           normOffset;
  };
  const bool isGlobal = bare.ends_with("_global");
  const std::string kinds = isGlobal ? bare.substr(0, bare.find('_')) : bare;
  const char kind = kinds.back();  // q, k, v, o, or a number
  if (family == "deberta") {
    const std::string self = rootOfLayer(encoders.at(family).layer, layer) + "attention.self.";
    if (bare == "bq") return files.at(self + "q_bias").at(column, 0);
    if (bare == "bv") return files.at(self + "v_bias").at(column, 0);
    if (bare == "w_position_keys") return value(self + "pos_proj", column, i);
    if (bare.ends_with("position_queries")) return value(self + "pos_q_proj", column, i);
    // Of each head its queries' rows, then its keys', then its values'.
    if (const size_t part = std::string("qkv").find(kind); part != std::string::npos)
      return value(self + "in_proj", (head * 3 + int64_t(part)) * size + column % size, i);
  }
  if (const auto encoder = encoders.find(family); encoder != encoders.end()) {
    const EncoderNames &names = encoder->second;
    const std::string root = rootOfLayer(names.layer, layer), suffix = isGlobal ? "_global" : "";
    if (bare == "gamma1" || bare == "beta1") return normed(root + names.norm1);
    if (bare == "gamma2" || bare == "beta2") return normed(root + names.norm2);
    if (kind == 'q') return value(root + names.query + suffix, column, i);
    if (kind == 'k') return value(root + names.key + suffix, column, i);
    if (kind == 'v') return value(root + names.value + suffix, column, i);
    if (kind == 'o') return value(root + names.output, i, column);
    if (kind == '1') return value(root + names.up, u, i);
    return value(root + names.down, i, u);
  }
  if (const auto decoder = decoders.find(family); decoder != decoders.end()) {
    const DecoderNames &names = decoder->second;
    const std::string root = rootOfLayer(names.layer, layer);
    if (bare == "gamma1" || bare == "beta1") return normed(root + names.norm1);
    if (bare == "gamma2" || bare == "beta2") return normed(root + names.norm2);
    if (kind == 'o') return value(root + names.output, i, column);
    if (kind == '1') return value(root + names.up, u, i);
    if (kind == '2') return value(root + names.down, i, u);
    if (names.projections.find("{}") != std::string::npos)
      return value(root + fmt::format(fmt::runtime(names.projections), kind), column, i);
    const int64_t third = kind == 'q' ? 0 : kind == 'k' ? 1 : 2;
    // BLOOM has queries, keys and values of a head together, the others those of all heads.
    const int64_t row =
        family == "bloom" ? head * 2 * size + third * size + column : third * hidden + column;
    return value(root + names.projections, row, i);
  }
  const std::string root = fmt::format("model.layers.{}.", layer);
  if (bare == "gamma_q" || bare == "gamma_k")
    return files.at(root + fmt::format("self_attn.{}_norm.weight", kind)).at(axis("p"), 0);
  if (bare == "gamma1") return normed(root + "input_layernorm");
  if (bare == "gamma2") return normed(root + "post_attention_layernorm");
  if (bare == "w_gate") return value(root + "mlp.gate_proj", u, i);
  if (bare == "w_up") return value(root + "mlp.up_proj", u, i);
  if (bare == "w_down") return value(root + "mlp.down_proj", i, u);
  if (kind == 'o') return value(root + "self_attn.o_proj", i, column);
  return value(root + fmt::format("self_attn.{}_proj", kind), column, i);
}

const std::map<std::string, std::string> presets = {{"albert", "albert-base"},
                                                    {"bert", "bert-base"},
                                                    {"deberta", "deberta-base"},
                                                    {"distilbert", "distilbert"},
                                                    {"bigbird", "bigbird-large"},
                                                    {"bloom", "bloom-560m"},
                                                    {"gpt-neo", "gpt-neo-1.3b"},
                                                    {"longformer", "longformer-large"},
                                                    {"mpt", "mpt-7b"},
                                                    {"gemma", "gemma"},
                                                    {"opt", "opt"},
                                                    {"qwen3", "qwen3"},
                                                    {"roberta", "roberta"},
                                                    {"gpt2", "gpt2"},
                                                    {"llama", "llama-3-8b"}};

void compare(const WeightFiles &files, const std::string &family, const FileTensors &tensors,
             const std::vector<PlanTensor> &parameters) {
  for (const PlanTensor &parameter : nonEmpty(parameters)) {
    const std::vector<std::byte> elements = files.elements(parameter);
    int64_t count = 1;
    for (const int64_t extent : parameter.extents) count *= extent;
    REQUIRE(int64_t(elements.size()) == 4 * count);
    int64_t wrong = 0;
    for (int64_t n = 0; n < count; ++n) {
      std::map<std::string, int64_t> at;
      int64_t rest = n;
      for (size_t axis = parameter.extents.size(); axis-- > 0;) {
        at[parameter.axes[axis]] = rest % parameter.extents[axis];
        rest /= parameter.extents[axis];
      }
      wrong += reference::loadElement(DType::f32, elements.data() + 4 * n) !=
               elementOf(family, tensors, parameter, at);
    }
    INFO(parameter.logical);
    CHECK(wrong == 0);
  }
}

std::string errorOf(const std::function<void()> &function) {
  try {
    function();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every parameter finds its elements, of any float type") {
  const std::string family =
      GENERATE("albert", "bert", "bigbird", "bloom", "deberta", "distilbert", "gemma", "gpt2",
               "gpt-neo", "llama", "longformer", "mpt", "opt", "qwen3", "roberta");
  const test::TemporaryTestFolder folder;
  const std::vector<PlanTensor> parameters = parametersOf(presets.at(family));
  const FileTensors tensors = checkpoint(family);
  const std::string file = folder / "weights.safetensors";
  for (const DType dtype : {DType::f32, DType::f16}) {
    write(file, tensors, dtype);
    const WeightFiles files(file, family == "qwen3" ? "llama" : family);
    files.require(pointers(parameters));
    compare(files, family, tensors, parameters);
  }
}

TEST_CASE("a weight is of the layer that its importer gives it, whatever its name begins with") {
  const auto nameOf = [](const char *parameter, int64_t layer) {
    const auto source = models::weightSource("gpt2", parameter, layer);
    return source ? source->name : "none";
  };
  CHECK(nameOf("layer3_wq", 3) == "h.2.attn.c_attn.weight");
  CHECK(nameOf("wq", 2) == "h.1.attn.c_attn.weight");
  CHECK(nameOf("layer3_wq", 0) == "none");
  CHECK(nameOf("wq", 0) == "none");
}

TEST_CASE("shards are read by their index, which must hold what it says") {
  const test::TemporaryTestFolder folder;
  const std::vector<PlanTensor> parameters = parametersOf("gpt2");
  const FileTensors tensors = checkpoint("gpt2");
  FileTensors halves[2];
  std::string map;
  for (const auto &[name, tensor] : tensors) {
    const size_t half = name < "h.1" ? 0 : 1;
    halves[half][name] = tensor;
    map += fmt::format("{}\"{}\": \"{}.safetensors\"", map.empty() ? "" : ", ", name, half);
  }
  for (const size_t half : {0, 1})
    write(folder / fmt::format("{}.safetensors", half), halves[half], DType::f32);
  const std::string index = folder / "model.safetensors.index.json";
  CHECK_THAT(errorOf([&] { WeightFiles(folder.path(), "gpt2"); }),
             Catch::Contains("neither model.safetensors nor model.safetensors.index.json"));
  runtime::writeFile(index, "{\"weight_map\": {" + map + "}}");
  const WeightFiles files(folder.path(), "gpt2");
  files.require(pointers(parameters));
  compare(files, "gpt2", tensors, parameters);
  runtime::writeFile(index, "{\"weight_map\": {\"h.0.ln_1.weight\": \"../0.safetensors\"}}");
  CHECK_THAT(errorOf([&] { WeightFiles(folder.path(), "gpt2"); }),
             Catch::Contains("names no file beside the index"));
  runtime::writeFile(index, "{\"weight_map\": {\"h.0.ln_1.weight\": \"2.safetensors\"}}");
  CHECK_THAT(errorOf([&] { WeightFiles(folder.path(), "gpt2"); }),
             Catch::Contains("the shard '2.safetensors' is missing"));
  runtime::writeFile(index, R"({"weight_map": {"h.0.ln_1.weight": "3.safetensors",
      "h.0.ln_1.bias": "0.safetensors", "h.0.ln_2.bias": "2.safetensors"}})");
  CHECK_THAT(errorOf([&] { WeightFiles(folder.path(), "gpt2"); }),
             Catch::Contains("the shards '2.safetensors', '3.safetensors' are missing"));
  runtime::writeFile(index, "{\"weight_map\": {\"h.1.ln_1.weight\": \"0.safetensors\"}}");
  const std::string said =
      errorOf([&] { WeightFiles(folder.path(), "gpt2").require(pointers(parameters)); });
  CHECK_THAT(said, Catch::Contains("'h.1.ln_1.weight' is not in its shard '0.safetensors'"));
  CHECK_THAT(said, Catch::Contains("'h.1.ln_1.weight' is missing"));
}

TEST_CASE("weights that do not fit are all named, expected against found") {
  const test::TemporaryTestFolder folder;
  const std::vector<PlanTensor> parameters = parametersOf("gpt2");
  FileTensors tensors = checkpoint("gpt2");
  const std::string file = folder / "weights.safetensors";
  const auto said = [&] {
    write(file, tensors, DType::f32);
    return errorOf([&] { WeightFiles(file, "gpt2").require(pointers(parameters)); });
  };
  CHECK(said() == "");
  tensors.erase("h.1.ln_2.bias");
  tensors["h.0.mlp.c_fc.weight"].shape = {wide, hidden};
  tensors["wpe.weight"].shape = {length - 1, hidden};
  const std::string problems = said();
  CHECK_THAT(problems, Catch::Contains("'h.1.ln_2.bias' is missing; expected [32]"));
  CHECK_THAT(problems, Catch::Contains("'h.0.mlp.c_fc.weight' is F32 [40, 32]; expected [32, 40]"));
  CHECK_THAT(problems, Catch::Contains("'wpe.weight' is F32 [7, 32]; expected [at least 8, 32]"));
  tensors = checkpoint("gpt2");
  tensors["transformer.h.1.attn.c_atn.weight"] = {.shape = {2}};
  tensors["zzzzzzzz"] = {.shape = {2}};
  tensors["transformer.wte.weight"] = tensors["wte.weight"];
  tensors["wpe.weight"].shape = {length - 1, hidden};
  const std::string together = said();
  CHECK_THAT(together,
             Catch::Contains("'transformer.h.1.attn.c_atn.weight' is no weight of a model of gpt2; "
                             "nearest is 'transformer.h.1.attn.c_attn.weight'"));
  CHECK_THAT(together, Catch::EndsWith("'zzzzzzzz' is no weight of a model of gpt2"));
  CHECK_THAT(together, Catch::Contains("is there twice"));
  CHECK_THAT(together, Catch::Contains("'wpe.weight' is F32 [7, 32]; expected"));
  tensors = checkpoint("gpt2");
  tensors["h.0.attn.bias"] = {.shape = {2}};         // a buffer
  tensors["h.7.ln_1.weight"] = {.shape = {hidden}};  // of a layer that is not built
  CHECK(said() == "");
  for (int n = 0; n < 15; ++n) tensors[fmt::format("unknown.{}", n)] = {.shape = {2}};
  CHECK_THAT(said(), Catch::Contains("and 3 more that no parameter is read from"));
}
