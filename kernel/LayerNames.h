// The importers of models begin the name of what belongs to one of several layers with the layer's:
// "layer3_q". Layers count from 1.
//
// Invariant: names are for people. Which layer a tensor or a kernel is of, marks of the graph and
// members of the plan say (ir/LayerMarks.h, plan/Plan.h); these functions leave a layer's name away
// where one text stands for all layers, and move it where a part of a model is placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// "layer3_".
std::string layerPrefix(int64_t layer);
/// The first layer that a text names, at its begin or behind: 3 of "d_layer3_q"; 0 if it names
/// none.
int64_t firstLayerIn(std::string_view text);
/// "1..4, 6", of layers in any order, each once.
std::string layerRanges(const std::set<int64_t> &layers);
/// A text without the layers that it names: "q_k" of "layer3_q_layer3_k".
std::string withoutLayers(std::string_view text);
/// A text with `by` added to the number of every layer that it names: with 2, "fuse layer1_q,
/// layer2_k" becomes "fuse layer3_q, layer4_k".
std::string shiftLayers(std::string_view text, int64_t by);

/// What a part of a model calls an activation that comes from outside, counted from 1: "carried1"
/// (passes/layers/Layers.h).
std::string carriedName(size_t number);
/// A text that speaks of a part's tensors, of the part where it stands in the whole: there its
/// arguments have these names, and its layers stand so many further.
std::string placedText(const std::string &text, const std::vector<std::string> &arguments,
                       int64_t shift);

}  // namespace weft
