// Dimensions and mathematics of the presets, from the publications that introduced them.
#include "models/Presets.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"

namespace weft::models {
namespace {

/// "Data Movement Is All You Need", Figs. 1 and 2 and Table A.1: a BERT-large encoder layer in
/// training, with ReLU.
LayerSpecification paperEncoder(std::string name, bool attentionOnly) {
  return {.name = std::move(name),
          .family = Family::encoder,
          .attentionOnly = attentionOnly,
          .dims = {{"b", 8}, {"j", 512}, {"h", 16}, {"i", 1024}, {"u", 4096}},
          .activation = Activation::relu,
          .dropout = Dropouts::everywhere(0.1),
          .normStatistics = true};
}

/// Devlin et al. 2019, section 3, in inference; epsilon of the published checkpoints.
LayerSpecification bert(std::string name, int64_t layers, int64_t heads, int64_t hidden) {
  return {.name = std::move(name),
          .family = Family::encoder,
          .dims = {{"b", 8}, {"j", 512}, {"h", heads}, {"i", hidden}, {"u", 4 * hidden}},
          .activation = Activation::gelu,
          .epsilon = 1e-12,
          .model = {.layers = layers,
                    .vocabulary = 30522,
                    .tokenTypes = 2,
                    .hasPositions = true,
                    .hasPooler = true,
                    .weightNames = "bert"}};
}

/// Lan et al. 2020, Table 1, version 2: BERT-base whose layers share their weights, with tables of
/// 128 columns.
LayerSpecification albert() {
  LayerSpecification layer = bert("albert-base", 12, 12, 768);
  layer.activation = Activation::geluTanh;
  layer.model.vocabulary = 30000;
  layer.model.embedding = 128;
  layer.model.sharesLayers = true;
  layer.model.weightNames = "albert";
  return layer;
}

/// Sanh et al. 2019, section 3: half of BERT-base's layers, without token types and pooler.
LayerSpecification distilBert() {
  LayerSpecification layer = bert("distilbert", 6, 12, 768);
  layer.model.tokenTypes = 0;
  layer.model.hasPooler = false;
  layer.model.weightNames = "distilbert";
  return layer;
}

/// He et al. 2021, Table 8: BERT-base whose scores have terms of 1024 distances, in the place of
/// positions, token types and pooler; epsilon of the published checkpoints.
LayerSpecification debertaBase() {
  LayerSpecification layer = bert("deberta-base", 12, 12, 768);
  layer.dims["n"] = 1024;
  layer.epsilon = 1e-7;
  layer.disentangled = layer.queryDistances = layer.keyDistances = true;
  layer.model = {.layers = 12, .vocabulary = 50265, .weightNames = "deberta"};
  return layer;
}

/// Zaheer et al. 2020: BERT-large, whose scores exist in tiles of 64: a window of 3, the first and
/// the last, and 3 that each head draws for itself.
LayerSpecification bigBirdLarge() {
  LayerSpecification layer = bert("bigbird-large", 24, 16, 1024);
  layer.model.vocabulary = 50358;
  layer.model.weightNames = "bigbird";
  layer.model.dropsBeforeNorm = true;
  layer.dims["b"] = 1, layer.dims["j"] = 4096;
  layer.activation = Activation::geluTanh;
  layer.blocks = "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each)";
  return layer;
}

/// Beltagy et al. 2020: BERT-large over 256 keys on each side, and global positions with
/// separate projections, 64 here.
LayerSpecification longformerLarge() {
  LayerSpecification layer = bert("longformer-large", 24, 16, 1024);
  layer.model.vocabulary = 50265;
  layer.model.tokenTypes = 1;
  layer.model.weightNames = "longformer";
  layer.model.firstPosition = 2;
  layer.dims["b"] = 1, layer.dims["j"] = 4096, layer.dims["a"] = 64;
  layer.epsilon = 1e-5;
  layer.window = 257;
  layer.globalPositions = true;
  return layer;
}

/// Radford et al. 2019, section 2.3: normalization before each block, context 1024.
LayerSpecification gpt2(std::string name, int64_t layers, int64_t heads, int64_t hidden) {
  return {.name = std::move(name),
          .family = Family::decoder,
          .dims = {{"b", 1}, {"j", 1024}, {"h", heads}, {"i", hidden}, {"u", 4 * hidden}},
          .activation = Activation::geluTanh,
          .causal = true,
          .model = {.layers = layers,
                    .vocabulary = 50257,
                    .hasPositions = true,
                    .hasLogits = true,
                    .weightNames = "gpt2",
                    .isTied = true}};
}

/// Black et al. 2021: scores without a scale, no biases of queries, keys and values; every second
/// layer is local, where a query sees 256 keys with its own.
LayerSpecification gptNeo(std::string name, bool isLocal) {
  LayerSpecification layer{.name = std::move(name),
                           .family = Family::decoder,
                           .dims = {{"b", 1}, {"j", 2048}, {"h", 16}, {"i", 2048}, {"u", 8192}},
                           .activation = Activation::geluTanh,
                           .projectionBias = false,
                           .causal = true,
                           .scaleScores = false,
                           .model = {.layers = 24,
                                     .vocabulary = 50257,
                                     .hasPositions = true,
                                     .hasLogits = true,
                                     .weightNames = "gpt-neo",
                                     .isTied = true}};
  constexpr int64_t localWindow = 256;
  if (!isLocal) layer.layerWindows = {0, localWindow};
  else layer.window = localWindow, layer.model = {};
  return layer;
}

/// Grattafiori et al. 2024, Table 3: 32 heads in 8 key/value groups, rotary base 500,000.
LayerSpecification llama3() {
  return {
      .name = "llama-3-8b",
      .family = Family::llama,
      .dims = {{"b", 1}, {"j", 2048}, {"h", 32}, {"g", 8}, {"p", 128}, {"i", 4096}, {"u", 14336}},
      .activation = Activation::silu,
      .projectionBias = false,
      .outputBias = false,
      .feedForwardBias = false,
      .causal = true,
      .rotaryBase = 500000,
      .model = {.layers = 32, .vocabulary = 128256, .hasLogits = true, .weightNames = "llama"}};
}

/// Le Scao et al. 2022, Table 3: BLOOM-560m; ALiBi, tanh GELU, normalization before each block.
LayerSpecification bloom() {
  return {.name = "bloom-560m",
          .family = Family::decoder,
          .dims = {{"b", 1}, {"j", 2048}, {"h", 16}, {"i", 1024}, {"u", 4096}},
          .activation = Activation::geluTanh,
          .causal = true,
          .model = {.layers = 24,
                    .vocabulary = 250880,
                    .hasLogits = true,
                    .weightNames = "bloom",
                    .isTied = true,
                    .normalizesEmbeddings = true},
          .score = {.alibi = 8}};
}

/// MosaicML 2023, MPT-7B: ALiBi, exact GELU, no biases, normalization before each block.
LayerSpecification mpt() {
  return {.name = "mpt-7b",
          .family = Family::decoder,
          .dims = {{"b", 1}, {"j", 2048}, {"h", 32}, {"i", 4096}, {"u", 16384}},
          .activation = Activation::gelu,
          .projectionBias = false,
          .outputBias = false,
          .feedForwardBias = false,
          .causal = true,
          .model = {.layers = 32,
                    .vocabulary = 50432,
                    .hasLogits = true,
                    .weightNames = "mpt",
                    .isTied = true},
          .normBias = false,
          .score = {.alibi = 8}};
}

/// Raffel et al. 2020, section 2.1: the Base model, 32 buckets of distances up to 128.
LayerSpecification t5(std::string name, bool isDecoder) {
  return {.name = std::move(name),
          .family = Family::t5,
          .dims = {{"b", 8}, {"j", 512}, {"h", 12}, {"p", 64}, {"i", 768}, {"u", 3072}, {"n", 32}},
          .activation = Activation::relu,
          .epsilon = 1e-6,
          .projectionBias = false,
          .outputBias = false,
          .feedForwardBias = false,
          .causal = isDecoder,
          .scaleScores = false,
          .crossAttention = isDecoder,
          .score = {.relative = 128, .hasBuckets = true, .hasCausalBuckets = isDecoder}};
}

/// Vaswani et al. 2017, Table 3: the base model.
LayerSpecification transformerDecoder() {
  return {.name = "transformer-decoder",
          .family = Family::transformerDecoder,
          .dims = {{"b", 8}, {"j", 512}, {"h", 8}, {"i", 512}, {"u", 2048}},
          .activation = Activation::relu,
          .causal = true};
}

/// A model small enough to be trained in minutes, of the layers of Devlin et al. 2019: bytes are
/// its tokens.
LayerSpecification maskedToken() {
  return {.name = "masked-token",
          .family = Family::maskedToken,
          .dims = {{"b", 32}, {"j", 64}, {"h", 4}, {"i", 128}, {"u", 512}, {"v", 256}},
          .activation = Activation::gelu,
          .dropout = Dropouts::everywhere(0.1),
          .normStatistics = true,
          .layers = 4,
          .model = {.layers = 4}};
}

LayerSpecification attentionCore() {
  return {.name = "attention",
          .family = Family::attention,
          .dims = {{"b", 8}, {"j", 512}, {"h", 16}, {"p", 64}}};
}

}  // namespace

const std::vector<PresetRow> &presetRows() {
  static const std::vector<PresetRow> rows = {
      {albert(),
       "ALBERT-base encoder layer, inference: post-norm, tanh GELU; a model's layers share "
       "weights"},
      {attentionCore(),
       "softmax(q k / sqrt(p)) v alone, any h, g, j, k, p, w; --mask says which keys are seen"},
      {bert("bert-base", 12, 12, 768), "BERT-base encoder layer, inference: post-norm, exact GELU"},
      {bert("bert-large", 24, 16, 1024),
       "BERT-large encoder layer, inference: post-norm, exact GELU"},
      {bigBirdLarge(),
       "BigBird-large encoder layer, inference: post-norm, tanh GELU, block mask of tiles of 64"},
      {bloom(), "BLOOM-560m decoder layer, inference: pre-norm, ALiBi, causal, tanh GELU"},
      {debertaBase(),
       "DeBERTa-base encoder layer, inference: post-norm, exact GELU, disentangled attention"},
      {distilBert(), "DistilBERT encoder layer, inference: post-norm, exact GELU"},
      {gptNeo("gpt-neo-1.3b", false),
       "GPT-Neo 1.3B global decoder layer, inference: pre-norm, causal, scores without a scale"},
      {gptNeo("gpt-neo-1.3b-local", true),
       "GPT-Neo 1.3B local decoder layer, inference: the same over the last 256 keys"},
      {gpt2("gpt2", 12, 12, 768),
       "GPT-2 (124M) decoder layer, inference: pre-norm, causal, tanh GELU"},
      {gpt2("gpt2-medium", 24, 16, 1024),
       "GPT-2 medium (355M) decoder layer, inference: pre-norm, causal, tanh GELU"},
      {llama3(), "Llama 3 8B decoder layer, inference: RMS norm, rotary, grouped queries, SwiGLU"},
      {longformerLarge(),
       "Longformer-large encoder layer, inference: post-norm, 256 keys on each side, a global "
       "positions"},
      {mpt(), "MPT-7B decoder layer, inference: pre-norm, ALiBi, causal, exact GELU, no biases"},
      {paperEncoder("paper-attention", true),
       "multi-head attention of paper-encoder with its biases and dropout"},
      {paperEncoder("paper-encoder", false),
       "BERT-large encoder layer in training: ReLU, dropout 0.1, post-norm"},
      {t5("t5-base-decoder", true),
       "T5-Base decoder layer, inference: relative bias, attention over a memory, ReLU"},
      {t5("t5-base-encoder", false),
       "T5-Base encoder layer, inference: RMS norm, relative bias, no scale, ReLU"},
      {transformerDecoder(),
       "Transformer (base) decoder layer: causal, attention over a memory, post-norm, ReLU"},
  };
  return rows;
}

const std::vector<PresetRow> &modelRows() {
  static const std::vector<PresetRow> rows = {
      {maskedToken(),
       "masked-token model with its loss, to be trained: byte embeddings, 4 encoder layers, cross "
       "entropy"},
  };
  return rows;
}

const PresetRow *findPreset(std::string_view name) {
  for (const std::vector<PresetRow> *rows : {&presetRows(), &modelRows()})
    for (const PresetRow &row : *rows)
      if (row.specification.name == name) return &row;
  return nullptr;
}

void throwUnknownPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const std::vector<PresetRow> *rows : {&presetRows(), &modelRows()})
    for (const PresetRow &row : *rows) names.push_back(row.specification.name);
  throw Error::badInput("unknown preset '{}'{}; a path must end in .json or .mlir", name,
                        nearestAndKnown(name, names));
}

}  // namespace weft::models
