// Overrides, derived extents and contradictions of a layer's dimensions. Invariant: what
// resolveDims returns holds every axis that the layer's builder asks for, each in [1, 2^31 - 1].
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "models/LayerSpecification.h"

#include <algorithm>
#include <limits>

namespace weft::models {
namespace {

constexpr int64_t largestExtent = std::numeric_limits<int32_t>::max();
/// Of queries and of keys: fused attention takes no more.
constexpr int64_t mostPositions = int64_t(1) << 20;

bool hasGroups(const LayerSpecification &specification) {
  return specification.family == Family::llama || specification.family == Family::attention;
}

/// BERT and GPT-2 define the head dim as hidden size / heads; Llama-like models may choose it
/// freely.
bool headsFillEmbedding(const LayerSpecification &specification) {
  return specification.family == Family::encoder || specification.family == Family::decoder ||
         specification.family == Family::transformerDecoder ||
         specification.family == Family::maskedToken;
}

/// Attention over a memory, whose positions are an axis.
bool hasMemory(const LayerSpecification &specification) {
  return !specification.attentionOnly &&
         (specification.crossAttention || specification.family == Family::transformerDecoder);
}

void checkOverrides(const LayerSpecification &specification, const Dims &overrides) {
  const std::vector<std::string> known = settableDims(specification);
  for (const auto &[name, extent] : overrides) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error::badInput("{}: unknown dimension '{}'{}", specification.name, name,
                            nearestAndKnown(name, known));
    if (extent < 1 || extent > largestExtent)
      throw Error::badInput("{}: dimension {}={} is outside 1..{}", specification.name, name,
                            extent, largestExtent);
  }
}

int64_t quotient(const LayerSpecification &specification, const Dims &dims,
                 const std::string &dividend, const std::string &divisor, const char *meaning) {
  const int64_t a = dims.at(dividend), b = dims.at(divisor);
  if (a % b != 0)
    throw Error::badInput("{}: {}: {}={} is not divisible by {}={}", specification.name, meaning,
                          dividend, a, divisor, b);
  return a / b;
}

void deriveMissing(const LayerSpecification &specification, Dims &dims) {
  dims.try_emplace("k", dims.at("j"));
  if (hasMemory(specification)) dims.try_emplace("m", dims.at("j"));
  if (specification.globalPositions) dims["o"] = dims.at("j") - dims.at("a");
  if (!dims.count("p"))
    dims["p"] =
        quotient(specification, dims, "i", "h", "the hidden size must be a multiple of the heads");
  dims.try_emplace("w", dims.at("p"));
  if (specification.hasDistances()) {
    // Products with the distances that occur have rows of so many elements: of whole 16 bytes,
    // which tensor cores read as they lie.
    constexpr int64_t multiple = 8;
    const int64_t occurring = 2 * std::max(dims.at("j"), dims.at("k"));
    dims["l"] = std::min(dims.at("n"), (occurring + multiple - 1) / multiple * multiple);
  }
  if (!hasGroups(specification)) return;
  dims.try_emplace("g", dims.at("h"));
  dims["r"] =
      quotient(specification, dims, "h", "g", "key/value heads must divide the query heads");
}

void checkContradictions(const LayerSpecification &specification, const Dims &dims) {
  for (const char *axis : {"j", "k"})
    if (dims.at(axis) > mostPositions)
      throw Error::badInput("{}: dimension {}={}: at most {} (2^20) positions are supported",
                            specification.name, axis, dims.at(axis), mostPositions);
  if (headsFillEmbedding(specification) && dims.at("i") != dims.at("h") * dims.at("p"))
    throw Error::badInput(
        "{}: i={} must equal h * p = {} * {} = {}; leave p out to let it follow i / h",
        specification.name, dims.at("i"), dims.at("h"), dims.at("p"), dims.at("h") * dims.at("p"));
  if (specification.family == Family::llama) {
    const int64_t turned = turnedExtent(specification, dims.at("p"));
    if (turned == dims.at("p") && turned % 2 != 0)
      throw Error::badInput("{}: rotary positions turn pairs, so p={} must be even",
                            specification.name, turned);
    if (turned < 2 || turned % 2 != 0)
      throw Error::badInput(
          "{}: rotary positions turn pairs, so the share {} of p={} must be an even number",
          specification.name, specification.rotaryShare, dims.at("p"));
  }
  if (specification.family == Family::maskedToken && dims.at("k") != dims.at("j"))
    throw Error::badInput("{}: k={} must equal j={}: every token attends to all of its sequence",
                          specification.name, dims.at("k"), dims.at("j"));
  if (specification.globalPositions && dims.at("a") >= dims.at("j"))
    throw Error::badInput(
        "{}: a={} global positions of j={}: at most {}, since the others have separate projections",
        specification.name, dims.at("a"), dims.at("j"), dims.at("j") - 1);
  if (specification.globalPositions && dims.at("k") != dims.at("j"))
    throw Error::badInput("{}: k={} must equal j={}: global positions are queries and keys",
                          specification.name, dims.at("k"), dims.at("j"));
  if (specification.disentangled && dims.at("k") != dims.at("j"))
    throw Error::unsupported(
        "{}: k={} differs from j={}: distances are those of queries and keys of one sequence; "
        "nearest is the preset 'attention' with --score relative=N, whose j and k are free",
        specification.name, dims.at("k"), dims.at("j"));
  if (specification.disentangled && dims.at("w") != dims.at("p"))
    throw Error::unsupported(
        "{}: w={} differs from p={}: queries, keys and values of DeBERTa are of one size",
        specification.name, dims.at("w"), dims.at("p"));
  if (specification.cache && dims.at("j") > dims.at("k"))
    throw Error::badInput("{}: j={} new tokens do not fit into caches of {} positions (--cache)",
                          specification.name, dims.at("j"), dims.at("k"));
  if ((specification.layers > 1 || specification.isWhole) && !specification.cache &&
      dims.at("k") != dims.at("j"))
    throw Error::badInput(
        "{}: k={} must equal j={}: every layer attends to what the one before it computes",
        specification.name, dims.at("k"), dims.at("j"));
  if (specification.documents && dims.at("j") > dims.at("k"))
    throw Error::badInput(
        "{}: --mask document: j={} queries stand at the last of k={} keys, so the first ones have "
        "no segment; k is at least j",
        specification.name, dims.at("j"), dims.at("k"));
  if (specification.family == Family::t5 && dims.at("k") != dims.at("j"))
    throw Error::unsupported(
        "{}: k={} differs from j={} in a layer of T5 (keys of earlier steps are not supported); "
        "nearest is the preset 'attention' with --score relative=N, whose j and k are free",
        specification.name, dims.at("k"), dims.at("j"));
  if (specification.family != Family::attention && specification.causal && !specification.cache &&
      dims.at("k") != dims.at("j"))
    throw Error::unsupported(
        "{}: k={} differs from j={} in a causal layer; {} the preset 'attention', whose j and k "
        "are free",
        specification.name, dims.at("k"), dims.at("j"),
        specification.takesCache()
            ? "nearest are --cache N (inference), where keys of earlier steps lie, and"
            : "nearest is");
}

}  // namespace

int64_t turnedExtent(const LayerSpecification &specification, int64_t headExtent) {
  return int64_t(double(headExtent) * specification.rotaryShare);
}

std::vector<std::string> settableDims(const LayerSpecification &specification) {
  std::vector<std::string> names = {"b", "j", "h"};
  if (!specification.cache) names.insert(names.begin() + 2, "k");
  if (specification.page) names.push_back("f");
  if (hasGroups(specification)) names.push_back("g");
  if (hasMemory(specification)) names.push_back("m");
  if (specification.globalPositions) names.push_back("a");
  names.insert(names.end(), {"p", "w"});
  if (specification.family == Family::attention) return names;
  names.push_back("i");
  if (!specification.attentionOnly) names.push_back("u");
  if (specification.family == Family::maskedToken || specification.isWhole) names.push_back("v");
  if (specification.isWhole && specification.model.tokenTypes > 0) names.push_back("s");
  if (specification.isWhole && specification.model.embedding > 0) names.push_back("d");
  return names;
}

Dims resolveDims(const LayerSpecification &specification, const Dims &overrides) {
  checkOverrides(specification, overrides);
  const std::vector<std::string> known = settableDims(specification);
  Dims dims = overrides;
  for (const auto &[name, extent] : specification.dims)
    if (std::find(known.begin(), known.end(), name) != known.end()) dims.try_emplace(name, extent);
  if (specification.cache) dims["k"] = *specification.cache;
  if (specification.page) {
    dims["c"] = *specification.page;
    dims["e"] = dims.at("k") / dims.at("c");
    dims.try_emplace("f", dims.at("b") * dims.at("e"));
  }
  if (specification.isWhole) dims.try_emplace("v", specification.model.vocabulary);
  if (specification.isWhole && specification.model.tokenTypes > 0)
    dims.try_emplace("s", specification.model.tokenTypes);
  if (specification.isWhole && specification.model.embedding > 0)
    dims.try_emplace("d", specification.model.embedding);
  // No caller's choice: the table is part of the model.
  if (specification.score.hasBuckets || specification.hasDistances())
    dims["n"] = specification.dims.at("n");
  deriveMissing(specification, dims);
  checkContradictions(specification, dims);
  return dims;
}

}  // namespace weft::models
