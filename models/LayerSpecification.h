// What a layer builder needs to know, as plain data without MLIR. Presets and config.json both end
// here; nothing of a model that changes the mathematics of one layer may live anywhere else.
#pragma once

#include "models/ScoreForm.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::models {

/// Extents by axis letter: b batch, d columns of embedding tables that are projected, j query, k
/// key, h query heads, g key/value heads, r heads per group, p query/key head dim, w value head
/// dim, i embedding, u feed-forward, v vocabulary, m positions of the memory of a cross attention,
/// n buckets of distances or rows of distances, l of these those that occur, s token types, a
/// global positions and o the others (j = a + o).
using Dims = std::map<std::string, int64_t>;

enum class Family : uint8_t {
  attention,  ///< softmax(q k) v alone: no weights
  encoder,    ///< BERT-like: attention and feed-forward, normalization after each residual
  decoder,    ///< GPT-2-like: causal, layer normalization before attention and feed-forward
  llama,      ///< RMS normalization, rotary positions, grouped key/value heads, gated feed-forward
  t5,         ///< RMS normalization before each block, biases of scores by distance, no scale
  transformerDecoder,  ///< Vaswani et al.: causal, then attention over a memory, normalization
                       ///< after each residual
  maskedToken,  ///< a model with its loss: embeddings, encoder layers, cross entropy at masked
                ///< positions
};

enum class Activation : uint8_t { relu, gelu, geluTanh, silu, quickGelu };

/// Rotary positions for longer contexts than the first training's (weft.rotary in ir/SPEC.md).
struct RotaryScaling {
  double factor = 1;     ///< that frequencies are divided by
  int64_t original = 0;  ///< positions of the first training; 0: all frequencies are divided
  double low = 0, high = 0;
  bool operator==(const RotaryScaling &) const = default;
};

/// The model that a layer is of, beside its layers. What is 0 or false is not known or not there.
struct ModelSpecification {
  int64_t layers = 0;
  int64_t vocabulary = 0;     ///< 0: the model cannot be built as a whole
  int64_t tokenTypes = 0;     ///< rows of a table that is added to the tokens' (BERT's segments)
  int64_t embedding = 0;      ///< columns of these tables where a projection widens them (ALBERT)
  bool sharesLayers = false;  ///< all layers have one set of weights
  bool hasPositions = false;  ///< a learned table of positions is added
  bool hasPooler = false;     ///< tanh of a projection of each sequence's first position
  bool hasLogits = false;     ///< a projection to the vocabulary
  std::string weightNames = {};  ///< of published checkpoints (WeightNames.h); empty: not known
  bool isTied = false;           ///< whose weight is the table of tokens
  bool normalizesEmbeddings = false;  ///< of decoders; encoders always do
  bool dropsBeforeNorm = false;       ///< dropout of embeddings stands before their norm
  double embeddingScale = 1;          ///< of the rows of tokens
  /// The row of a checkpoint's table that the first position has: RoBERTa counts from behind the
  /// padding token's id.
  int64_t firstPosition = 0;
  bool operator==(const ModelSpecification &) const = default;
};

/// Probabilities of dropout by what is dropped; 0 leaves the op out.
struct Dropouts {
  double embedding = 0;      ///< of a whole model: what its first layer reads
  double probabilities = 0;  ///< of attention, behind the softmax
  double attention = 0;      ///< what attention adds to the residual stream
  double activation = 0;   ///< within a feed-forward: its activation, times a gate's if it has one
  double feedForward = 0;  ///< what a feed-forward adds to the residual stream
  static Dropouts everywhere(double p) { return {p, p, p, p, p}; }
  bool operator==(const Dropouts &) const = default;
};

struct LayerSpecification {
  std::string name = {};
  Family family = Family::encoder;
  bool attentionOnly =
      false;  ///< part=attention: projections, attention, output projection; no residual, no norm
  Dims dims = {};  ///< defaults; p, k, w, g may be absent and then follow others (resolveDims)
  Activation activation = Activation::gelu;
  Dropouts dropout = {};
  double epsilon = 1e-5;  ///< of every normalization
  /// The residual stream (Elhage et al. 2021) is f32, whatever the elements: what layers read, sums
  /// of residuals, and results of norms that are summands of the next one. GEMMs read its elements
  /// rounded to the model's type.
  bool hasWideResidual = false;
  bool normStatistics = false;  ///< layer_norm also yields mean and rstd, which training needs
  bool projectionBias = true;   ///< on q, k and v
  bool outputBias = true;       ///< on the attention's output projection
  bool feedForwardBias = true;
  bool causal = false;
  bool scaleScores = true;  ///< scores are multiplied by 1/sqrt(p)
  /// Keys that a query sees, its own included: to the left, and as many to the right where not
  /// causal.
  std::optional<int64_t> window = {};
  bool padding = false;  ///< an argument says how many keys a sequence has
  /// Of these: a mask over sequences and positions, ones and then zeros, in the place of lengths.
  bool hasAttentionMask = false;
  double rotaryBase = 10000;  ///< llama only
  double rotaryShare = 1;     ///< of a head's elements, the first ones, that turn
  RotaryScaling rotaryScaling = {};
  bool normalizesHeads = false;  ///< llama: an RMS norm of each query and key head
  int64_t layers = 1;            ///< built in sequence
  bool isWhole = false;          ///< part=model: with what the model has around its layers
  bool hasLoss = false;          ///< of a whole model with logits: they end in a loss
  ModelSpecification model = {};
  bool normBias = true;           ///< layer normalization adds a parameter
  bool gatedFeedForward = false;  ///< the activation is multiplied with a second projection
  bool crossAttention = false;    ///< t5: a decoder layer, over a memory
  ScoreForm score = {};           ///< of self attention
  /// Positions of caches of keys and values, which new tokens are appended to; of k, then.
  std::optional<int64_t> cache = {};
  /// Positions of a page that caches lie in, c; of f pages in memory, e entries of an argument list
  /// those of a sequence. Nothing: caches lie in one piece.
  std::optional<int64_t> page = {};
  /// Beside a cache: an argument says how many of the new tokens a sequence has.
  bool hasNewLengths = false;
  bool documents = false;  ///< an argument says which tokens belong together
  /// Of several layers: `window` of layer n is this one's element n - 1, from the first again where
  /// it ends; 0: none. Empty: `window` is of all.
  std::vector<int64_t> layerWindows = {};
  /// Encoders only: the first a positions see all keys, by separate projections, and all see them
  /// (Longformer).
  bool globalPositions = false;
  /// Encoders only: keys have no bias, and products of queries, of keys or of both with vectors of
  /// distances are terms of scores; each divides the square of their scale by one more (DeBERTa).
  /// The vectors come of a table of n rows.
  bool disentangled = false, queryDistances = false, keyDistances = false;
  bool hasDistances() const { return queryDistances || keyDistances; }
  /// Whether keys and values of earlier steps may lie in caches (--cache).
  bool takesCache() const {
    return causal && (family == Family::decoder || family == Family::llama);
  }
  /// Which tiles of scores exist (ScoreMask.h).
  std::optional<std::string> blocks = {};
  bool operator==(const LayerSpecification &) const = default;
};

/// The axes that --dim may set for this layer, in the order people read them.
std::vector<std::string> settableDims(const LayerSpecification &specification);

/// Elements of a head of so many that turn.
int64_t turnedExtent(const LayerSpecification &specification, int64_t headExtent);

/// Every extent after overrides. What is not given follows: k = j, p = i / h, w = p, g = h, and
/// grouped layers get r = h / g. Throws Error(badInput) that names dimension, value and limit for
/// unknown, non-positive or too large extents and for contradictions (h does not divide i, g does
/// not divide h, i differs from h * p where heads fill the embedding), and Error(unsupported) for a
/// causal layer whose k differs from j.
Dims resolveDims(const LayerSpecification &specification, const Dims &overrides);

}  // namespace weft::models
