// Where published checkpoints keep the weights of a model: the names of Hugging Face's files, and
// how their axes lie. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

/// A tensor of a checkpoint that holds a parameter, or has it as a part.
struct WeightSource {
  std::string name;  ///< "h.2.attn.c_attn.weight"
  /// Its dimensions, with a space between them: of each the parameter's axes that it merges,
  /// slowest first. A digit in front of an axis is which of three stacked parts is taken; "<" in
  /// front, that the dimension may be longer and its first indices are taken, with a number before
  /// it those from that index on. "i 0hp", "h0p i", "<j i", "2<j i".
  std::string dimensions;
  double plus =
      0;  ///< that the parameter is more than the tensor: Gemma's norms multiply with 1 + w
};

/// Names of weights: "albert", "bert", "bigbird", "bloom", "deberta", "distilbert", "gemma",
/// "gpt2", "gpt-neo", "llama" (also of Mistral, Qwen2 and Qwen3), "longformer", "mpt", "opt" and
/// "roberta" (also of CamemBERT and XLM-RoBERTa). The source of a parameter of such a model, as
/// its importer calls it ("layer3_wq" of layer 3, "token_table" of none); nothing for one that no
/// checkpoint has.
std::optional<WeightSource> weightSource(std::string_view names, std::string_view parameter,
                                         int64_t layer);

/// A name of a checkpoint without what its file may have in front of all ("bert.", "model.").
std::string withoutModelPrefix(std::string_view names, std::string_view name);
/// Whether a checkpoint of these models may have a tensor of that name, whatever the number of its
/// layer; buffers that are no weights, and heads of other tasks, included. Without its prefix.
bool isWeightName(std::string_view names, std::string_view name);
/// Of the names that isWeightName() knows the nearest to one that it does not know, of the same
/// layer; empty if none is near.
std::string nearestWeightName(std::string_view names, std::string_view name);

}  // namespace weft::models
