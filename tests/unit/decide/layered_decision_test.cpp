// Where layers are cut: by what is lost, then by what crosses, then by the distance from their
// border.
#include "passes/decide/LayeredDecision.h"

#include <catch2/catch.hpp>

using namespace weft;
using decision::chooseCut;

TEST_CASE("the cut that loses the fewest fused candidates is chosen, whatever crosses it") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 10, .lost = 2},
                   {.tensors = 2, .bytes = 90, .lost = 0},
                   {.tensors = 1, .bytes = 10, .lost = 1}},
                  1) == 1);
}

TEST_CASE("of cuts that lose as many candidates the one with the fewest bytes is chosen") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 1},
                   {.tensors = 1, .bytes = 10, .lost = 1},
                   {.tensors = 1, .bytes = 20, .lost = 1}},
                  1) == 1);
}

TEST_CASE("of equal cuts the nearest to the border is chosen") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 1},
                   {.tensors = 1, .bytes = 10, .lost = 0},
                   {.tensors = 1, .bytes = 10, .lost = 0}},
                  1) == 1);
}

TEST_CASE("a place that two tensors more cross than the fewest is no cut") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 3},
                   {.tensors = 3, .bytes = 10, .lost = 0},
                   {.tensors = 2, .bytes = 40, .lost = 2}},
                  1) == 2);
}
