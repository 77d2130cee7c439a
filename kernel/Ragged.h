// Where tokens of sequences of different lengths stand when they are packed one after the other.
//
// offsets: one more than there are sequences, ascending from 0; the last one is the number of
// tokens, which is known at run time alone. Offsets that are not ascending give unspecified
// elements, but nothing outside a tensor is read: interpreter, references and emitted kernels all
// bisect as here.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace weft {

struct TokenPlace {
  int64_t sequence = 0, position = 0;
};

/// The first step of a bisection over `count` sequences: it halves down to 1. 0: one sequence.
inline int64_t firstBisectionStep(int64_t count) {
  return count < 2 ? 0 : int64_t(std::bit_floor(uint64_t(count - 1)));
}

/// The last sequence that begins at the token or before it.
template <typename Offset>
int64_t sequenceOfToken(int64_t token, int64_t count, Offset offset) {
  int64_t sequence = 0;
  for (int64_t step = firstBisectionStep(count); step > 0; step /= 2)
    if (sequence + step < count && offset(sequence + step) <= token) sequence += step;
  return sequence;
}

/// Nothing from the last offset on, nor for a token beyond the `length` of its sequence.
template <typename Offset>
std::optional<TokenPlace> placeOfToken(int64_t token, int64_t count, int64_t length,
                                       Offset offset) {
  const int64_t sequence = sequenceOfToken(token, count, offset),
                position = token - offset(sequence);
  if (token >= offset(count) || position < 0 || position >= length) return std::nullopt;
  return TokenPlace{.sequence = sequence, .position = position};
}

/// Which of `tokens` stands at a position of a sequence; nothing behind the sequence's last token.
template <typename Offset>
std::optional<int64_t> tokenAt(int64_t sequence, int64_t position, int64_t tokens, Offset offset) {
  const int64_t token = offset(sequence) + position;
  if (token >= offset(sequence + 1) || token < 0 || token >= tokens) return std::nullopt;
  return token;
}

}  // namespace weft
