// Unfused attention in fp32 by one thread, in plain loops: what "Parallel softmax by tree
// reduction" measures its kernels against. Scores, softmax and weighted sum are three loops over
// stored scores; a softmax is three scans of a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::bench {

/// Of one head: rows of queries, keys and values, each of `head` elements.
struct SequentialShape {
  int64_t batch = 1, length = 0, head = 0;
  int64_t operandElements() const { return batch * length * head; }
};

/// Seconds of each step, of all batch elements together.
struct SequentialTimes {
  double score = 0, softmax = 0, weighted = 0;
  double total() const { return score + softmax + weighted; }
};

/// out = softmax(q k^T / sqrt(head)) v. Every operand has operandElements(); `scores` has batch x
/// length x length and holds the probabilities afterwards.
SequentialTimes attend(const SequentialShape &shape, std::span<const float> q,
                       std::span<const float> k, std::span<const float> v, std::span<float> scores,
                       std::span<float> out);

/// The greatest distance of some rows of `out` from the same in fp64.
double greatestError(const SequentialShape &shape, std::span<const float> q,
                     std::span<const float> k, std::span<const float> v,
                     std::span<const float> out);

}  // namespace weft::bench
