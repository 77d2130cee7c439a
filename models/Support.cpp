// Facts of the families; see Support.h.
#include "models/Support.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "models/ScoreMask.h"

#include <map>

namespace weft::models {

std::string_view nameOf(Family family) {
  switch (family) {
    case Family::attention: return "attention";
    case Family::encoder: return "encoder";
    case Family::decoder: return "decoder";
    case Family::llama: return "llama";
    case Family::t5: return "t5";
    case Family::transformerDecoder: return "transformer-decoder";
    case Family::maskedToken: return "masked-token";
  }
  return "";
}

std::string_view summaryOf(Family family) {
  switch (family) {
    case Family::attention: return "softmax(q k) v alone: no weights";
    case Family::encoder:
      return "attention and feed-forward, normalization after each residual, as BERT";
    case Family::decoder:
      return "causal, layer normalization before attention and feed-forward, as GPT-2";
    case Family::llama:
      return "causal, RMS norm, rotary positions, grouped key/value heads, gated feed-forward";
    case Family::t5:
      return "RMS norm before each block, biases of scores by distance, no scale, as T5";
    case Family::transformerDecoder:
      return "causal attention, attention over a memory and feed-forward, normalization after each "
             "residual";
    case Family::maskedToken:
      return "a model with its loss: embeddings, encoder layers, cross entropy";
  }
  return "";
}

Part partNamed(const std::string &word) {
  if (const std::optional<Part> part = valueNamed(partWords, word)) return *part;
  std::vector<std::string> known;
  for (const auto &[part, name] : partWords) known.emplace_back(name);
  throw Error::badInput("unknown part '{}'{}", word, nearestAndKnown(word, known));
}

std::vector<Part> supportedParts(const LayerSpecification &specification) {
  if (specification.family == Family::maskedToken) return {Part::layer};
  if (specification.model.vocabulary > 0) return {Part::layer, Part::attention, Part::model};
  return {Part::layer, Part::attention};
}

std::vector<std::string> supportedTypes(const LayerSpecification &specification) {
  if (specification.family == Family::maskedToken) return {"f32", "f16", "bf16"};
  return {"f16", "bf16", "f32"};
}

std::vector<std::string> supportedMasks(const LayerSpecification &specification) {
  if (specification.globalPositions) return {"padding", "attention-mask"};
  if (specification.blocks) return {"causal", "window=N", "padding", "attention-mask", "document"};
  return scoreMaskWords();
}

std::vector<std::string> supportedScoreForms(const LayerSpecification &specification) {
  if (specification.family != Family::attention) return {};
  return {"alibi", "relative=N", "softcap=C"};
}

bool isTrained(const LayerSpecification &specification) {
  // Neither buckets nor biases by distance have a gradient.
  return !specification.score.hasBuckets && !specification.hasDistances();
}

std::string_view meaningOfAxis(std::string_view axis) {
  static const std::map<std::string_view, std::string_view> meanings = {
      {"a", "global positions, the first ones"},
      {"b", "batch"},
      {"d", "columns of the embedding tables"},
      {"g", "key/value heads"},
      {"h", "query heads"},
      {"i", "embedding"},
      {"j", "query positions"},
      {"k", "key positions"},
      {"l", "distances that occur"},
      {"m", "positions of the memory"},
      {"n", "buckets, or rows, of distances"},
      {"p", "size of a query or key head"},
      {"r", "query heads of a group"},
      {"s", "token types"},
      {"u", "feed-forward"},
      {"v", "vocabulary"},
      {"w", "size of a value head"}};
  const auto found = meanings.find(axis);
  return found == meanings.end() ? std::string_view() : found->second;
}

std::string_view ruleOfAxis(std::string_view axis) {
  static const std::map<std::string_view, std::string_view> rules = {
      {"g", "h"}, {"k", "j"}, {"m", "j"}, {"p", "i / h"}, {"w", "p"}};
  const auto found = rules.find(axis);
  return found == rules.end() ? std::string_view() : found->second;
}

}  // namespace weft::models
