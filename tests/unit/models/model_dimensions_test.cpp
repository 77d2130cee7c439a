// Dimensions of layers: what follows what, and every rejection's message.
#include "kernel/Error.h"
#include "models/Presets.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::models;

namespace {
const LayerSpecification &preset(const std::string &name) {
  return findPreset(name)->specification;
}

Dims resolved(const std::string &name, const Dims &overrides = {}) {
  return resolveDims(preset(name), overrides);
}

/// "badInput: text" of the error that resolving throws, or "no error".
std::string errorOf(const std::string &name, const Dims &overrides) {
  try {
    resolved(name, overrides);
  } catch (const Error &error) {
    return (error.kind == ErrorKind::badInput ? "badInput: " : "unsupported: ") +
           std::string(error.what());
  }
  return "no error";
}
}  // namespace

TEST_CASE("the presets have the published dimensions") {
  const Dims paper = {{"b", 8},   {"h", 16}, {"i", 1024}, {"j", 512},
                      {"k", 512}, {"p", 64}, {"u", 4096}, {"w", 64}};
  CHECK(resolved("paper-encoder") == paper);
  Dims withoutFeedForward = paper;
  withoutFeedForward.erase("u");
  CHECK(resolved("paper-attention") == withoutFeedForward);
  const Dims llama = {{"b", 1},    {"g", 8},   {"h", 32}, {"i", 4096},  {"j", 2048},
                      {"k", 2048}, {"p", 128}, {"r", 4},  {"u", 14336}, {"w", 128}};
  CHECK(resolved("llama-3-8b") == llama);
  const Dims neo = {{"b", 1},    {"h", 16},  {"i", 2048}, {"j", 2048},
                    {"k", 2048}, {"p", 128}, {"u", 8192}, {"w", 128}};
  CHECK(resolved("gpt-neo-1.3b") == neo);
  CHECK(resolved("gpt-neo-1.3b-local") == neo);
  Dims sparse = paper;
  sparse["b"] = 1, sparse["j"] = sparse["k"] = 4096;
  CHECK(resolved("bigbird-large") == sparse);
  sparse["a"] = 64, sparse["o"] = 4032;
  CHECK(resolved("longformer-large") == sparse);
  CHECK(resolved("gpt2-medium").at("i") == 1024);
}

TEST_CASE("global positions are some of the queries, and these are the keys") {
  CHECK(errorOf("longformer-large", {{"j", 64}}) ==
        "badInput: longformer-large: a=64 global positions of j=64: at most 63, since the others "
        "have separate projections");
  CHECK(errorOf("longformer-large", {{"k", 100}}) ==
        "badInput: longformer-large: k=100 must equal j=4096: global positions are queries and "
        "keys");
}

TEST_CASE("dimensions that are not given follow others") {
  CHECK(resolved("bert-base", {{"j", 77}}).at("k") == 77);
  CHECK(resolved("bert-base", {{"j", 77}, {"k", 5}}).at("k") == 5);
  CHECK(resolved("bert-base", {{"h", 6}}).at("p") == 128);
  CHECK(resolved("bert-base", {{"h", 6}}).at("w") == 128);
  CHECK(resolved("attention", {{"p", 96}}).at("w") == 96);
  CHECK(resolved("attention", {{"p", 96}, {"w", 32}}).at("w") == 32);
  CHECK(resolved("attention", {{"h", 6}}).at("g") == 6);
  CHECK(resolved("attention", {{"h", 6}, {"g", 2}}).at("r") == 3);
  CHECK(resolved("llama-3-8b", {{"h", 8}}).at("p") == 128);
}

TEST_CASE("a tensor of more than 2^31 elements is no contradiction") {
  CHECK(resolved("attention", {{"b", 64}, {"j", 65536}}).at("k") == 65536);
  CHECK(resolved("attention", {{"h", 2147483647}}).at("h") == 2147483647);
}

TEST_CASE("at most 2^20 positions of queries and of keys") {
  CHECK(resolved("attention", {{"j", 1048576}}).at("k") == 1048576);
  CHECK(errorOf("attention", {{"j", 1048577}}) ==
        "badInput: attention: dimension j=1048577: at most 1048576 (2^20) positions are supported");
  CHECK(errorOf("attention", {{"j", 1}, {"k", 2097152}}) ==
        "badInput: attention: dimension k=2097152: at most 1048576 (2^20) positions are supported");
  CHECK(errorOf("bert-base", {{"j", 2147483647}}) ==
        "badInput: bert-base: dimension j=2147483647: at most 1048576 (2^20) positions are "
        "supported");
}

TEST_CASE("unknown, zero, negative and overflowing dimensions") {
  CHECK(
      errorOf("bert-base", {{"J", 5}}) ==
      "badInput: bert-base: unknown dimension 'J'; nearest is 'j' (known: b, j, k, h, p, w, i, u)");
  CHECK(errorOf("bert-base", {{"g", 2}}) ==
        "badInput: bert-base: unknown dimension 'g' (known: b, j, k, h, p, w, i, u)");
  CHECK(errorOf("paper-attention", {{"u", 2}}) ==
        "badInput: paper-attention: unknown dimension 'u' (known: b, j, k, h, p, w, i)");
  CHECK(errorOf("gpt2", {{"b", 0}}) == "badInput: gpt2: dimension b=0 is outside 1..2147483647");
  CHECK(errorOf("gpt2", {{"b", -3}}) == "badInput: gpt2: dimension b=-3 is outside 1..2147483647");
  CHECK(errorOf("gpt2", {{"j", 2147483648}}) ==
        "badInput: gpt2: dimension j=2147483648 is outside 1..2147483647");
}

TEST_CASE("contradicting dimensions") {
  CHECK(errorOf("bert-base", {{"h", 5}}) ==
        "badInput: bert-base: the hidden size must be a multiple of the heads: i=768 is not "
        "divisible by h=5");
  CHECK(errorOf("paper-encoder", {{"p", 32}}) ==
        "badInput: paper-encoder: i=1024 must equal h * p = 16 * 32 = 512; leave p out to let it "
        "follow i / h");
  CHECK(errorOf("llama-3-8b", {{"g", 5}}) ==
        "badInput: llama-3-8b: key/value heads must divide the query heads: h=32 is not divisible "
        "by g=5");
  CHECK(errorOf("llama-3-8b", {{"p", 65}}) ==
        "badInput: llama-3-8b: rotary positions turn pairs, so p=65 must be even");
  CHECK(
      errorOf("gpt2", {{"k", 5}}) ==
      "unsupported: gpt2: k=5 differs from j=1024 in a causal layer; nearest are --cache N "
      "(inference), where keys of earlier steps lie, and the preset 'attention', whose j and k are "
      "free");
  CHECK(errorOf("transformer-decoder", {{"k", 129}}) ==
        "unsupported: transformer-decoder: k=129 differs from j=512 in a causal layer; nearest is "
        "the preset 'attention', whose j and k are free");
  CHECK(errorOf("paper-encoder", {{"k", 5}}) == "no error");
}

TEST_CASE("a causal attention core takes any number of keys and queries") {
  LayerSpecification causal = preset("attention");
  causal.causal = true;
  CHECK(resolveDims(causal, {{"j", 1}, {"k", 9}}).at("k") == 9);
  CHECK(resolveDims(causal, {{"j", 9}, {"k", 1}}).at("k") == 1);
  CHECK(errorOf("attention", {{"h", 32}, {"g", 5}}) ==
        "badInput: attention: key/value heads must divide the query heads: h=32 is not divisible "
        "by g=5");
}

TEST_CASE("an unknown preset names the nearest") {
  CHECK_THROWS_WITH(
      throwUnknownPreset("bert-larg"),
      "unknown preset 'bert-larg'; nearest is 'bert-large' (known: albert-base, "
      "attention, bert-base, bert-large, bigbird-large, bloom-560m, deberta-base, distilbert, "
      "gpt-neo-1.3b, gpt-neo-1.3b-local, gpt2, gpt2-medium, llama-3-8b, longformer-large, "
      "mpt-7b, paper-attention, paper-encoder, t5-base-decoder, t5-base-encoder, "
      "transformer-decoder, "
      "masked-token); a path must end in .json or .mlir");
}
