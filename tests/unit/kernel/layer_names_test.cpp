// Names of what belongs to a layer.
#include "kernel/LayerNames.h"

#include <catch2/catch.hpp>

using namespace weft;

TEST_CASE("the name of a layer stands before an underscore, and is no part of another word") {
  CHECK(layerPrefix(3) == "layer3_");
  CHECK(firstLayerIn("layer12_q") == 12);
  for (const char *name : {"q", "layer_norm", "layer3", "layer_3_q", "players3_q", "layerx_q", ""})
    CHECK(firstLayerIn(name) == 0);
}

TEST_CASE("every layer that a text names moves, and nothing else") {
  CHECK(shiftLayers("layer1_wq_layer1_wk: layer2_q", 10) == "layer11_wq_layer11_wk: layer12_q");
  CHECK(shiftLayers("%layer9_q = weft.layer_norm %x", 1) == "%layer10_q = weft.layer_norm %x");
  CHECK(shiftLayers("player1_q residual_layer_norm layer1", 1) ==
        "player1_q residual_layer_norm layer1");
  CHECK(shiftLayers(shiftLayers("layer5_q", -7), 7) == "layer5_q");
}

TEST_CASE("a text without its layers") {
  CHECK(withoutLayers("layer1_layer1_q_product_layer2_k") == "q_product_k");
  CHECK(withoutLayers("residual_layer_norm__b_j_i") == "residual_layer_norm__b_j_i");
}

TEST_CASE("the first layer that a text names") {
  CHECK(firstLayerIn("layer3_q") == 3);
  CHECK(firstLayerIn("d_layer12_q, layer1_k") == 12);
  CHECK(firstLayerIn("residual_layer_norm, players3_q") == 0);
}

TEST_CASE("layers that follow each other are one range") {
  CHECK(layerRanges({}) == "");
  CHECK(layerRanges({7}) == "7");
  CHECK(layerRanges({4, 1, 2, 3}) == "1..4");
  CHECK(layerRanges({1, 3, 4, 5, 9}) == "1, 3..5, 9");
}
