// The expressions of ops that depend on where an element lies: masks, rotary embedding, biases of
// scores. Coordinates are those of the op's dimensions (Expression::withAxes makes them axes of a
// kernel).
#pragma once

#include "kernel/Kernel.h"
#include "kernel/RotaryStyle.h"
#include "kernel/ScoreBias.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace weft {

/// Which keys a query sees; others become `fill`. Queries are aligned to the end of the keys:
/// `shift` is the number of keys less that of queries; or, of causal and window with `hasStarts`,
/// they stand from the start of their sequence on, the op's second operand.
struct MaskShape {
  enum class Kind : uint8_t {
    causal,    ///< key <= query + shift
    window,    ///< query + shift - left <= key <= query + shift + right; with global positions also
               ///< key < global, or query + shift < global
    padding,   ///< key < length, the op's second operand
    block,     ///< where the second operand has no zero for the block of `size` x `size`
    pattern,   ///< the table of the attribute `pattern` has the tile (kernel/BlockMask.h)
    document,  ///< key and query + shift have one segment: the second operand, by batch and key
    tokens,    ///< key < the number of packed tokens, the last of the second operand's offsets
    unread     ///< the same; what follows them is not specified, since nothing reads it
  };
  Kind kind = Kind::causal;
  int key = 0, query = 0;                 ///< dimensions
  int batch = 0;                          ///< dimension of a document mask
  int64_t shift = 0;                      ///< of causal, window and document
  bool hasStarts = false;                 ///< of causal and window, in the place of the shift
  int64_t left = 0, right = 0;            ///< of a window
  int64_t global = 0;                     ///< of a window: positions that see all and all see
  int64_t size = 1;                       ///< of a block
  int64_t sequences = 1;                  ///< of tokens: offsets are one more
  std::vector<int> heads = {};            ///< of a pattern by head: dimensions, slowest first
  std::vector<int64_t> headExtents = {};  ///< of these
  double fill = -std::numeric_limits<double>::infinity();
};
/// As the dialect writes it: "causal", "padding".
std::string_view nameOf(MaskShape::Kind kind);
std::optional<MaskShape::Kind> maskKindNamed(std::string_view name);
Expression maskExpression(const MaskShape &mask);
/// Of the segments of a document mask that are drawn at random: with few of them, tokens see
/// several others.
constexpr int64_t mostRandomSegment = 3;
bool isDocumentMask(const BodyOp &op);
/// Of packed tokens, whose second operand is offsets; what follows them is `fill` or unread.
bool isTokensMask(const BodyOp &op);
bool isTokensMask(std::string_view kind);
/// That what follows packed tokens is unread.
bool isUnreadMask(const BodyOp &op);

/// Pairs are as the style has them: x of the pair's first turns into x cos - partner sin, that of
/// its second into x cos + partner sin (RoFormer, section 3.4.2); the other way around in reverse,
/// as gradients do. Of the extent the first `turned` elements are pairs; the others stay.
/// Frequencies are base^(-2 pair / turned), over `factor` where `original` is 0, and else as
/// scaledFrequency (device/rotary_scaling.cuh) has them.
struct RotaryShape {
  RotaryStyle style = RotaryStyle::halved;
  bool isReverse = false;
  /// For results of 16 bits: the angle and its sine in fewer instructions
  /// (device/short_rotation.cuh).
  bool isShort = false;
  /// Positions count from the start of their sequence, the op's second operand.
  bool hasStarts = false;
  /// The starts run along positions, of packed tokens: a token's position is its distance from the
  /// start of its sequence.
  bool isPacked = false;
  int dimension = 0, position = 0;  ///< dimensions: of the pairs, and of the angle's factor
  int rank = 1;                     ///< dimensions of the operand
  int64_t extent = 2;               ///< of `dimension`
  int64_t turned = 2;               ///< even, at most the extent
  double base = 10000;
  double factor = 1;
  int64_t original = 0;      ///< positions
  double low = 0, high = 0;  ///< turns in as many positions
  /// A dimension of which the elements from `begin` up to `end` alone are turned; -1: all are.
  int among = -1;
  int64_t begin = 0, end = 0;
};
Expression rotaryExpression(const RotaryShape &rotary);
/// Whether this is such an expression with short rotations.
bool hasShortRotations(const Expression &expression);

/// x + slope * (key - query - shift); the slope by alibiSlope(), of the head whose digits the
/// coordinates along `heads` are, slowest first.
struct AlibiShape {
  std::vector<int> heads;        ///< dimensions
  std::vector<int64_t> extents;  ///< of these
  int query = 0, key = 0;        ///< dimensions
  int64_t shift = 0;             ///< keys less queries
  double steepness = 8;
};
Expression alibiExpression(const AlibiShape &alibi);

/// x + the second operand's element at the distance key - query - shift, or minus it in reverse,
/// plus `distance`, clipped to its last axis; its coordinates before are those `along` dimensions.
struct RelativeBiasShape {
  std::vector<int> along;
  int query = 0, key = 0;
  int64_t shift = 0;      ///< keys less queries
  int64_t distance = 1;   ///< the last one to either side
  int64_t distances = 3;  ///< of the table: 2 distance + 1, or 2 distance without the last one
  bool isReverse = false;
};
Expression relativeBiasExpression(const RelativeBiasShape &bias);

/// The operand's element at the bucket of (last coordinate - farthest), its first coordinate; the
/// others are the coordinates before the last one. The bucket is a tree of comparisons with the
/// distances at which relativeBucket() changes, so that every kernel has it exactly.
struct ExpandBucketsShape {
  BucketKind kind = BucketKind::causal;
  int64_t buckets = 2;
  int64_t farthest = 2;
  int rank = 1;  ///< dimensions of operand and result
};
Expression expandBucketsExpression(const ExpandBucketsShape &table);

}  // namespace weft
