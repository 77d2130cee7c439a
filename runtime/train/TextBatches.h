// Batches of masked tokens from a text: bytes are tokens, byte 0 is the mask (Devlin et al. 2019,
// section 3.1, task 1).
//
// A batch is a function of (text, seed, step) alone, through RandomValues (kernel/RandomValues.h);
// n counts sequences, B a step, and positions, L a sequence:
//   start of sequence s at step t   integer(t B + s, 0, bytes - L) of "batch start"
//   positions that are predicted    those of the M = max(1, round(0.15 L)) smallest bits((t B + s)
//                                   L + p) of "batch order"
//   what stands there               by integer(n, 0, 9) of "batch action": below 8 the mask, 8
//                                   integer(n, 1, V - 1) of "batch byte", 9 the byte itself; n = (t
//                                   B + s) L + p
// Labels are the bytes at these positions and -1 elsewhere; weights are 1 / (B M) and 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::runtime {

struct TokenBatch {
  std::vector<int32_t> tokens, labels;
  std::vector<float> weights;  ///< [sequence][position], all three
  bool operator==(const TokenBatch &) const = default;
};

class TextBatches {
public:
  /// `vocabulary`: tokens 0 .. vocabulary - 1. Throws Error(badInput) naming `where` when the text
  /// is shorter than a sequence, or holds a byte that is no token.
  TextBatches(std::string text, const std::string &where, int64_t sequences, int64_t length,
              int64_t vocabulary, uint64_t seed);

  TokenBatch at(int64_t step) const;

private:
  void fillSequence(int64_t number, TokenBatch &batch) const;
  std::vector<int64_t> predictedPositions(int64_t number) const;

  std::string text;
  int64_t sequences, length, vocabulary;
  uint64_t seed;
  int64_t predicted;
};

/// The text that ships: documentation of this project.
std::string shippedText();

}  // namespace weft::runtime
