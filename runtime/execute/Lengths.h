// Lengths of sequences that a caller gives or asks for: --lengths of `weft run` and `weft time`.
#pragma once

#include "plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {
class Error;
struct EntryPoint;
}  // namespace weft

namespace weft::runtime {

class Executor;

/// R of "mean=R"; nothing for the name of a file. Throws Error(badInput) for another R than a share
/// above 0.
std::optional<double> meanOf(const std::string &asked);
/// The integers of a file by line, LENGTH:N N times; empty lines are none. Throws Error(badInput)
/// that names what is none.
std::vector<std::vector<int32_t>> readLengthLines(const std::string &path);
/// Whether each line is a batch of so many sequences; any other lines are one list.
bool areBatches(const std::vector<std::vector<int32_t>> &lines, int64_t sequences);

/// The lengths of one argument of the plan by what --lengths says: "mean=R", drawn by the seed with
/// a mean of R times the longest (0 < R <= 1), or a file of integers, one a sequence, or the first
/// batch of a file of batches. Throws Error(badInput) for anything else.
std::vector<std::byte> askedLengths(const PlanTensor &tensor, const std::string &asked,
                                    uint64_t seed);

/// A mask over (sequences, positions): as many ones a row as the sequence has tokens, then zeros.
std::vector<std::byte> prefixMask(const PlanTensor &tensor, const std::vector<int32_t> &lengths);

/// Of an argument that counts tokens: that the length of a sequence is negative or above the
/// longest; or, of a mask, that an element of its row is 1 behind a 0.
Error elementError(const PlanTensor &tensor, int64_t value, int64_t sequence,
                   std::string_view where);

/// Throws Error(badInput) that names the sequence whose length is negative or above the longest, or
/// whose row of a mask is no prefix.
void checkLengths(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where);

/// Throws Error(badInput) that names the first of offsets of sequences that lies before the one in
/// front of it, or that the first is not 0, or the last beyond all tokens.
void checkOffsets(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where);

/// Of the inputs of the entry point that count tokens.
void setLengths(Executor &executor, const EntryPoint &entry, const std::string &asked,
                uint64_t seed);

/// Throws Error(badInput) where lengths are asked of a plan that takes none, or that cannot be
/// read. Says on standard error which batch of several is taken.
void checkAskedLengths(const Plan &plan, const std::string &asked);

}  // namespace weft::runtime
