// Cases of fused attention for the GPU that its families draw alike: head widths, masks and kinds
// of score ops, at odd lengths. Groups:
//   attention              every mask and score op, several queries to a key's head
//   attention-packed       over packed tokens; attention-ended: with masks by their lengths;
//                          attention-packed-sums: with the logarithms of sums
//   attention-turned       queries that are turned when they are loaded
//   attention-hard         scores that are equal, huge, of the type's end, low or tiny
//   attention-unread       NaN and infinity behind counts and in tokens of no sequence
//   attention-drawn        shapes, masks, score ops, dropout and configurations drawn
#pragma once

#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <utility>
#include <vector>

namespace weft::gputest {

using samples::AttentionExtents;

/// Block masks at any extents: the first has rows and columns without a tile.
inline constexpr const char *ofAllHeads = "fixed(block=32,stride=3,summary=1)",
                            *ofEachHead =
                                "bigbird(block=16,window=3,global=0,random=1,seed=0,heads=each)";

/// Widths of heads, and of values.
inline constexpr std::pair<int64_t, int64_t> headWidths[] = {
    {64, 64}, {128, 128}, {16, 16},   {32, 48},   {40, 40},  {72, 72},
    {80, 80}, {96, 96},   {192, 128}, {192, 192}, {256, 256}};
/// Those of packed tokens in training.
inline constexpr std::pair<int64_t, int64_t> packedWidths[] = {
    {64, 64}, {128, 128}, {16, 16}, {32, 48}, {40, 40}, {72, 72}, {80, 80}, {96, 96}};
/// Of queries and keys.
inline constexpr AttentionExtents attentionLengths[] = {
    {.b = 2, .h = 3, .j = 1, .k = 1},
    {.b = 1, .h = 2, .j = 63, .k = 65},
    {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
    {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
    {.b = 2, .h = 1, .g = 4, .j = 200, .k = 777}};
/// Of packed tokens: one token a sequence, odd lengths, groups of heads, many sequences.
inline constexpr AttentionExtents packedExtents[] = {
    {.b = 3, .h = 2, .j = 1, .k = 1, .tokens = 3},
    {.b = 7, .h = 3, .j = 130, .k = 130, .tokens = 910},
    {.b = 4, .h = 2, .g = 2, .j = 517, .k = 517, .tokens = 2068},
    {.b = 70, .h = 1, .g = 3, .j = 65, .k = 65, .tokens = 4550},
    {.b = 1, .h = 3, .j = 201, .k = 201, .tokens = 201}};

/// Which kinds of kernels the shapes of a sweep have: one in `share`, and others for the next width
/// and for the next length, so that over `share` lengths every width meets every kind.
class KindsInTurn {
public:
  explicit KindsInTurn(size_t share) : share(share) {}
  void nextLength() { place = ++length; }
  void nextWidth() { ++place; }
  bool takes(size_t kind) const { return (kind + place) % share == 0; }

private:
  size_t share, length = 0, place = 0;
};

/// Every mask and score op. Block masks are empty at some short extents, which no kernel takes.
/// Document masks are of at least as many keys as queries.
std::vector<Kernel> kindsOf(const AttentionExtents &extents, DType type, bool hasBlocks = true);
/// Extents by the dice of the collector.
AttentionExtents drawExtents(Collector &collect, int64_t mostWidth);

/// Those of one family, a group each or more.
void addAttentions(Collector &collect, const DrawnFamily &family);
void addPackedAttentions(Collector &collect, const DrawnFamily &family);
void addPackedSums(Collector &collect, const DrawnFamily &family);
void addRotatedAttentions(Collector &collect, const DrawnFamily &family);
void addHardAttentions(Collector &collect, const DrawnFamily &family);
void addUnreadAttentions(Collector &collect, const DrawnFamily &family);
void addDrawnAttentions(Collector &collect, const DrawnFamily &family);

}  // namespace weft::gputest
