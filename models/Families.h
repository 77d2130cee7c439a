// One builder a family of layers. Each takes an empty LayerBuilder and returns the results of the
// finished graph.
#pragma once

#include "models/LayerBuilder.h"

namespace weft::models {

/// q [b,h,j,p], k [b,g,k,p], v [b,g,k,w] -> [b,h,j,w]; h = g where heads are not grouped. With a
/// padding mask also lengths [b].
mlir::Value buildAttention(LayerBuilder &layer);

/// Devlin et al. 2019 / "Data Movement Is All You Need" Fig. 2: x [b,j,i] -> [b,j,i], normalized
/// after each residual. With k different from j, keys and values come from a second argument,
/// context [b,k,i].
mlir::Value buildEncoder(LayerBuilder &layer);

/// One encoder layer: x [b,j,i], source [b,k,i] -> [b,j,i].
mlir::Value encoderLayer(LayerBuilder &layer, mlir::Value x, mlir::Value source);

/// Devlin et al. 2019, section 3.1, task 1: token and position embeddings, normalized, encoder
/// layers, logits over the vocabulary v, and the sum of the cross entropies of tokens [b,j] (i32)
/// against labels [b,j] (i32; outside the vocabulary: none), each times its weight [b,j]. The
/// output projection has separate weights. The result is a scalar, the loss.
mlir::Value buildMaskedToken(LayerBuilder &layer);

/// Radford et al. 2019: normalized before attention and feed-forward, causal.
mlir::Value buildDecoder(LayerBuilder &layer);
/// One decoder layer: x [b,j,i] -> [b,j,i].
mlir::Value decoderLayer(LayerBuilder &layer, mlir::Value x);

/// Touvron et al. 2023: RMS normalization, rotary positions, grouped key/value heads, gated
/// feed-forward.
mlir::Value buildLlama(LayerBuilder &layer);
/// One Llama layer: x [b,j,i] -> [b,j,i].
mlir::Value llamaLayer(LayerBuilder &layer, mlir::Value x);

/// Several layers of an encoder, a decoder or Llama, names of layer n beginning with "layern_":
/// x [b,j,i] -> [b,j,i]. Of a whole model: tokens [b,j] (i32; with token types also types [b,j]) ->
/// the last hidden states [b,j,i] and, with a pooler, pooled [b,i] (Devlin et al. 2019, section
/// 3); or logits [b,j,v] (Radford et al. 2019, section 2.3; Touvron et al. 2023), and with a loss
/// in their place the sum of the cross entropies against labels [b,j] (i32; outside the vocabulary:
/// none), each times its weight [b,j]: a scalar.
std::vector<mlir::Value> buildLayers(LayerBuilder &layer);

/// Raffel et al. 2020: x [b,j,i] normalized (RMS) before each block, self attention with a bias of
/// each head by the bucket of the distance, feed-forward; no biases, no scale of scores. With
/// `crossAttention` also attention over memory [b,m,i], an argument.
mlir::Value buildT5(LayerBuilder &layer);

/// Vaswani et al. 2017, section 3.1: causal self attention, attention over memory [b,m,i], an
/// argument, and feed-forward, each followed by dropout, residual and layer normalization.
mlir::Value buildTransformerDecoder(LayerBuilder &layer);

/// Multi-head attention with its projections: x [b,j,i], source [b,k,i] -> [b,j,i] ("Data Movement
/// Is All You Need", Fig. 1), heads as axis h.
mlir::Value multiHeadAttention(LayerBuilder &layer, mlir::Value x, mlir::Value source);

/// The same over memory [b,m,i], whose keys are all seen; names begin with "cross_".
mlir::Value crossAttention(LayerBuilder &layer, mlir::Value x, mlir::Value memory);

/// Scores (scaled by 1/sqrt(p) in their contraction), what the specification makes of them, mask,
/// softmax over k, dropout, weighted sum.
mlir::Value attend(LayerBuilder &layer, mlir::Value q, mlir::Value k, mlir::Value v,
                   const std::string &scoreSpec, const std::string &sumSpec);

/// The same of given scores, from their masks on.
mlir::Value weightedSum(LayerBuilder &layer, mlir::Value scores, mlir::Value v,
                        const std::string &sumSpec);

/// He et al. 2021, section 3.1, as its published checkpoints compute it: x [b,j,i] -> [b,j,i], with
/// relative_table [n,i], a parameter that all layers share.
mlir::Value disentangledAttention(LayerBuilder &layer, mlir::Value x);

/// Two linear layers with the activation between them: x [b,j,i] -> [b,j,i].
mlir::Value feedForward(LayerBuilder &layer, mlir::Value x);

/// Three: the activation of one, times another, is what the third takes.
mlir::Value gatedFeedForward(LayerBuilder &layer, mlir::Value x);

}  // namespace weft::models
