// Cases of contractions for the GPU that the GEMM families draw alike.
#pragma once

#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleSoftmaxes.h"

#include <string>

namespace weft::gputest {

/// Operands and result of a contraction by the letters of their axes.
struct GemmCase {
  const char *a, *b, *c;
};
inline constexpr GemmCase gemmCases[] = {{"ik", "kn", "in"},
                                         {"phi", "bji", "phbj"},
                                         {"phbk", "phbj", "hbjk"},
                                         {"hbjk", "whbk", "whbj"},
                                         {"bik", "bkn", "bin"}};

/// Products of 8-bit floats: aligned, odd and tiny extents, batch elements.
inline constexpr samples::Float8Extents float8Extents[] = {{.m = 512, .n = 768, .k = 512},
                                                           {.m = 1000, .n = 784, .k = 560},
                                                           {.b = 3, .m = 200, .n = 336, .k = 208},
                                                           {.b = 2, .m = 129, .n = 65, .k = 77},
                                                           {.m = 1, .n = 40, .k = 48},
                                                           {.m = 9, .n = 1, .k = 33},
                                                           {.m = 7, .n = 5, .k = 1},
                                                           {.b = 5, .m = 3, .n = 2, .k = 3},
                                                           {.m = 1, .n = 1, .k = 1000}};

/// Scores that end with a local softmax: sub-vectors of every length, whole and short.
inline constexpr samples::ScoreExtents softmaxExtents[] = {
    {},
    {.b = 3, .h = 2, .j = 50, .k = 331, .p = 24, .length = 32},
    {.b = 1, .h = 5, .j = 500, .k = 1032, .p = 64},
    {.b = 2, .h = 1, .j = 24, .k = 40, .p = 19, .length = 16},
    {.b = 1, .h = 1, .j = 7, .k = 9, .p = 64},
    {.b = 8, .h = 4, .j = 512, .k = 512, .p = 64}};
/// What inputs of such a kernel hold.
inline Inputs softmaxInputs(const Kernel &kernel) {
  return kernel.name == "masked_local_softmax" ? Inputs::masked : Inputs::usual;
}
/// Of contractions with what follows them, whose operands are read where an op computes it: no
/// fewer keys than queries.
inline constexpr samples::ContractionExtents gatheredExtents[] = {
    {.b = 3, .j = 50, .i = 72, .u = 331},
    {.b = 1, .j = 1000, .i = 200, .u = 1032},
    {.b = 2, .j = 24, .i = 19, .u = 40},
    {.b = 1, .j = 7, .i = 64, .u = 9}};
/// Of operands that are transformed on load: one tile and many, k that ends inside a k-tile, tiny
/// products, batch elements.
inline constexpr samples::PrologueExtents prologueExtents[] = {
    {},
    {.b = 3, .h = 2, .j = 50, .k = 203, .i = 203, .p = 40, .u = 331},
    {.b = 3, .h = 4, .j = 333, .k = 200, .i = 1000, .p = 16, .u = 1112},
    {.b = 2, .h = 2, .j = 256, .k = 512, .i = 512, .p = 128, .u = 768},
    {.b = 1, .h = 2, .j = 9, .k = 24, .i = 24, .p = 8, .u = 40},
    {.b = 1, .h = 1, .j = 1, .k = 7, .i = 1, .p = 1, .u = 3}};

/// Whether a family takes a configuration that it may not list, as one of views with padded rows.
using ViewTest = bool (*)(const Kernel &, const Configuration &);

/// Every tile in every orientation: aligned and odd, one tile and many, one k-tile and many,
/// fewer tiles than a block of each consumer has, and batch elements; also as views with padded
/// rows.
void addTensorContractions(Collector &collect, const std::string &group, const DrawnFamily &family,
                           ViewTest takesView);

/// Products of f32 read as tf32 (group tf32-tiles): every tile on extents that cut it on both
/// sides, with copied operands and with rows that start anywhere, in every orientation that it
/// takes.
void addTf32Tiles(Collector &collect, const DrawnFamily &drawn, ViewTest takesView);

}  // namespace weft::gputest
