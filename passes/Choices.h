// What may be asked of the passes that propose, as values: `automatic` proposes every way, and
// selection decides. No MLIR.
#pragma once

#include "kernel/AttentionChoice.h"
#include "kernel/LayerNames.h"
#include "kernel/Spelling.h"
#include "passes/fuse/Fusion.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

enum class NormChoice : uint8_t { automatic, fused, decomposed, deferred };
template <>
inline constexpr std::array<Spelling<NormChoice>, 4> spellings<NormChoice>{
    {{"auto", NormChoice::automatic},
     {"fused", NormChoice::fused},
     {"decomposed", NormChoice::decomposed},
     {"deferred", NormChoice::deferred}}};

/// Of projections of one input: apart, two of them, or three as one GEMM.
enum class StackingChoice : uint8_t { automatic, separate, two, three };
template <>
inline constexpr std::array<Spelling<StackingChoice>, 4> spellings<StackingChoice>{
    {{"auto", StackingChoice::automatic},
     {"separate", StackingChoice::separate},
     {"two", StackingChoice::two},
     {"three", StackingChoice::three}}};

/// What is asked of one site, by the name of its tensor: of an attention its softmax, of a norm its
/// result, of stacked projections the result of any of them. Of several layers a name without its
/// layer is that of all.
template <typename Choice>
struct SitePin {
  std::string site;
  Choice kind;
  bool operator==(const SitePin &) const = default;
};

/// What a name means of a tensor of a layer: itself, and without its layer's name; 0: itself alone.
inline std::vector<std::string> namesOfSite(const std::string &name, int64_t layer) {
  return layer > 0 ? std::vector{name, withoutLayers(name)} : std::vector{name};
}

/// The pin of a site; a name with its layer goes before one without. Null: it has none. `layer`: of
/// several; 0: of none.
template <typename Choice>
const SitePin<Choice> *pinAt(const std::vector<SitePin<Choice>> &pins, const std::string &name,
                             int64_t layer) {
  for (const std::string &own : namesOfSite(name, layer)) {
    const auto found = std::ranges::find(pins, own, &SitePin<Choice>::site);
    if (found != pins.end() && !own.empty()) return &*found;
  }
  return nullptr;
}

/// Whether the backward pass may compute saved tensors again.
enum class RecomputeChoice : uint8_t { automatic, none };

template <>
inline constexpr std::array<Spelling<FuseRules>, 3> spellings<FuseRules>{
    {{"paper", FuseRules::paper}, {"default", FuseRules::standard}, {"none", FuseRules::none}}};

}  // namespace weft
