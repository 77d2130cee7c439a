// Kernels of the backward pass of fused attention that NVRTC tests of its families compile, each
// with a name.
#pragma once

#include "tests/unit/samples/NamedKernel.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace weft::samples {

/// The name of the case that takes most registers.
inline constexpr const char *mostRegisters = "stored scores";

/// Widths, masks, score ops and dropout; the case that takes most registers.
inline std::vector<NamedKernel> backwardCases(DType type) {
  constexpr Dropout dropout{.p = 0.1, .stream = 1};
  std::vector<NamedKernel> result;
  for (const int64_t width : {32, 40, 64, 80, 96, 128}) {
    const AttentionExtents extents{.b = 2, .h = 6, .j = 777, .k = 777, .p = width, .w = width};
    result.push_back({fmt::format("backward {}", width), plainBackward(extents, type)});
    result.push_back({fmt::format("causal {}", width), causalBackward(extents, type)});
    result.push_back({fmt::format("dropped {}", width), causalBackward(extents, type, dropout)});
  }
  result.push_back({"wide", plainBackward({.j = 300, .k = 1000, .p = 192, .w = 128}, type)});
  for (const int64_t width : {192, 256}) {
    const AttentionExtents widest{
        .b = 2, .h = 2, .g = 2, .j = 300, .k = 300, .p = width, .w = width};
    result.push_back({fmt::format("widest {}", width), plainBackward(widest, type)});
    result.push_back(
        {fmt::format("widest, causal, dropped {}", width), causalBackward(widest, type, dropout)});
  }
  // Parts of a group: few keys, so that tiles of all its heads are too few.
  for (const int64_t width : {32, 40, 80}) {
    const AttentionExtents groups{
        .b = 1, .h = 2, .g = 8, .j = 512, .k = 512, .p = width, .w = width};
    result.push_back(
        {fmt::format("parts, dropped {}", width), plainBackward(groups, type, dropout)});
    result.push_back({fmt::format("parts, causal {}", width), causalBackward(groups, type)});
    result.push_back(
        {fmt::format("parts, causal, dropped {}", width), causalBackward(groups, type, dropout)});
  }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1000};
  result.push_back({"window", windowBackward(extents, type, 100, 30)});
  result.push_back({"padded", paddedBackward(extents, type)});
  result.push_back({"blocks", blockBackward(extents, type, "bigbird(block=64,seed=0)")});
  result.push_back(
      {"blocks of heads",
       blockBackward(extents, type, "random(block=16,density=0.2,seed=1,heads=each)", true, true)});
  result.push_back({"documents", documentBackward(extents, type)});
  result.push_back({"slopes of heads", alibiBackward(extents, type)});
  AttentionExtents far = extents;
  far.distance = 128;
  result.push_back({"relative bias", relativeBackward(far, type, true)});
  result.push_back({"added mask of keys", addedMaskBackward(extents, type)});
  result.push_back({"biased", biasedBackward(extents, type)});
  // Most registers: of 96 columns with dropout, of 128 without.
  const bool drops = type == DType::f16;
  const int64_t width = drops ? 96 : 128;
  result.push_back(
      {mostRegisters,
       biasedBackward({.b = 2, .h = 3, .g = 4, .j = 300, .k = 1001, .p = width, .w = width}, type,
                      true, drops ? std::optional(dropout) : std::nullopt)});
  result.push_back({"capped", cappedBackward(extents, type)});
  result.push_back({"capped, stored", cappedBackward(extents, type, true)});
  for (const int64_t own : {64, 80, 128}) {
    const AttentionExtents tokens{
        .b = 4, .h = 3, .g = 2, .j = 777, .k = 777, .p = own, .w = own, .tokens = 3108};
    result.push_back({fmt::format("packed {}", own),
                      packedBackward(tokens, type, true, own == 80,
                                     own == 128 ? std::nullopt : std::optional(dropout))});
  }
  return result;
}
}  // namespace weft::samples
