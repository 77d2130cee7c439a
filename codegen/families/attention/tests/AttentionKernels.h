// Kernels of fused attention that NVRTC tests of its families compile, each with a name.
#pragma once

#include "tests/unit/samples/NamedKernel.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace weft::samples {

/// Widths, masks and score ops at as many queries as keys.
inline std::vector<NamedKernel> attentionCases(DType type) {
  std::vector<NamedKernel> result;
  for (const int64_t width : {32, 40, 64, 80, 96, 128, 192, 256}) {
    const AttentionExtents extents{.b = 2, .h = 6, .j = 777, .k = 777, .p = width, .w = width};
    result.push_back({fmt::format("attention {}", width), plainAttention(extents, type, true)});
    result.push_back({fmt::format("causal {}", width), causalAttention(extents, type)});
  }
  // One block of keys, and two: loops that the compiler could take apart.
  for (const int64_t keys : {64, 128, 256})
    for (const int64_t width : {64, 128}) {
      const AttentionExtents extents{.h = 12, .j = keys, .k = keys, .p = width, .w = width};
      result.push_back({fmt::format("{} keys of {}", keys, width), plainAttention(extents, type)});
      result.push_back({fmt::format("causal {} keys", keys), causalAttention(extents, type)});
    }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1000};
  result.push_back({"window", windowAttention(extents, type, 100, 30)});
  result.push_back({"padded", paddedAttention(extents, type, true)});
  result.push_back({"biased", biasedAttention(extents, type)});
  result.push_back({"sloped", slopedAttention(extents, type)});
  result.push_back({"slopes of heads", alibiAttention(extents, type)});
  AttentionExtents far = extents;
  far.distance = 128;
  result.push_back({"relative bias", relativeAttention(far, type)});
  result.push_back({"disentangled", disentangledAttention(far, type, true)});
  AttentionExtents farAndWide = far;
  farAndWide.p = farAndWide.w = 128;
  result.push_back({"disentangled, wide", disentangledAttention(farAndWide, type)});
  result.push_back({"documents", documentAttention(extents, type, true)});
  for (const int64_t width : {64, 128, 256}) {
    AttentionExtents bounded = extents;
    bounded.hasBounds = true, bounded.p = bounded.w = width;
    result.push_back({fmt::format("documents with bounds {}", width),
                      documentAttention(bounded, type, width == 64)});
  }
  result.push_back({"blocks", blockAttention(extents, type, "bigbird(block=64,seed=0)")});
  result.push_back({"blocks of heads",
                    blockAttention(extents, type, "random(block=16,density=0.2,seed=1,heads=each)",
                                   true, true)});
  AttentionExtents wide = extents;
  wide.p = wide.w = 128;
  result.push_back(
      {"wide blocks", blockAttention(wide, type, "bigbird(block=32,seed=0)", false, true)});
  result.push_back({"wide blocks of heads",
                    blockAttention(wide, type, "bigbird(block=64,seed=0,heads=each)", true)});
  result.push_back({"dropped", droppedAttention(extents, type, {.p = 0.1, .stream = 1})});
  for (const int64_t width : {64, 128}) {
    const AttentionExtents tokens{
        .b = 4, .h = 3, .g = 2, .j = 777, .k = 777, .p = width, .w = width, .tokens = 3108};
    result.push_back({fmt::format("packed with sums {}", width),
                      packedAttention(tokens, type, true, width == 64, std::nullopt, true)});
    if (width == 64) result.push_back({"ended", endedAttention(tokens, type, true, true)});
  }
  return result;
}

/// Few queries and many keys: packed heads, warps of keys, splits.
inline std::vector<NamedKernel> decodingCases() {
  std::vector<NamedKernel> result;
  for (const int64_t width : {64, 80, 128, 192, 256})
    for (const int64_t queries : {1, 7, 33}) {
      const AttentionExtents extents{
          .h = 5, .g = 4, .j = queries, .k = 7777, .p = width, .w = width};
      const bool isCausal = result.size() % 2 == 1;
      const DType type = result.size() / 2 % 2 == 0 ? DType::f16 : DType::bf16;
      result.push_back(
          {fmt::format("{} queries of {}", queries, width),
           isCausal ? causalAttention(extents, type) : plainAttention(extents, type, true)});
    }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 3, .j = 5, .k = 4000};
  result.push_back({"few, window", windowAttention(extents, DType::f16, 100, 30)});
  result.push_back({"few, padded", paddedAttention(extents, DType::bf16, true)});
  result.push_back({"few, biased", biasedAttention(extents, DType::f16)});
  result.push_back({"few, sloped", slopedAttention(extents, DType::bf16)});
  result.push_back({"few, slopes of heads", alibiAttention(extents, DType::f16)});
  result.push_back({"few, documents", documentAttention(extents, DType::bf16, true)});
  AttentionExtents bounded = extents;
  bounded.hasBounds = true;
  result.push_back({"few, documents with bounds", documentAttention(bounded, DType::f16)});
  result.push_back({"few, capped", cappedAttention(extents, DType::f16, true)});
  result.push_back(
      {"few, dropped", droppedAttention(extents, DType::f16, {.p = 0.1, .stream = 1}, true)});
  for (const auto &[width, page] :
       {std::pair<int64_t, int64_t>{64, 64}, {80, 48}, {128, 16}, {128, 128}, {256, 16}})
    result.push_back(
        {fmt::format("few, of {} in pages of {}", width, page), cachedAttention({.b = 2,
                                                                                 .h = 3,
                                                                                 .g = 4,
                                                                                 .j = 1 + page % 5,
                                                                                 .k = 20 * page,
                                                                                 .p = width,
                                                                                 .w = width,
                                                                                 .page = page,
                                                                                 .pages = 30},
                                                                                DType::f16)});
  return result;
}

/// Queries that are turned: heads of every number of panels, both styles, parts of heads, starts of
/// sequences, packed tokens.
inline std::vector<NamedKernel> rotatedCases() {
  std::vector<NamedKernel> result;
  for (const int64_t width : {64, 80, 128, 256})
    for (const bool isHalved : {true, false}) {
      const DType type = isHalved ? DType::f16 : DType::bf16;
      const AttentionExtents extents{
          .b = 2, .h = 3, .g = 4, .j = 300, .k = 777, .p = width, .w = width};
      result.push_back({fmt::format("turned {}", width),
                        rotatedAttention(extents, type, {.isHalved = isHalved}, isHalved)});
    }
  const AttentionExtents few{.b = 2, .h = 4, .g = 4, .j = 16, .k = 4096, .p = 128, .w = 128};
  result.push_back({"turned, few", rotatedCachedAttention(few, DType::f16, {})});
  AttentionExtents paged = few;
  paged.page = 16, paged.pages = 600;
  result.push_back({"turned, pages", rotatedCachedAttention(paged, DType::bf16, {})});
  result.push_back({"turned, stretched",
                    rotatedAttention(few, DType::f16, {.turned = 64, .isStretched = true})});
  const AttentionExtents tokens{
      .b = 4, .h = 3, .g = 2, .j = 500, .k = 500, .p = 128, .w = 128, .tokens = 1500};
  result.push_back({"turned, packed", rotatedPackedAttention(tokens, DType::f16, {}, true)});
  return result;
}

}  // namespace weft::samples
