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
struct EntryPoint;
}

namespace weft::runtime {

class Executor;

/// R of "mean=R"; nothing for the name of a file. Throws Error(badInput) for another R than a share
/// above 0.
std::optional<double> meanOf(const std::string &asked);
/// The integers of a file, LENGTH:N N times. Throws Error(badInput) that names what is none.
std::vector<int32_t> readLengths(const std::string &path);

/// The lengths of one argument of the plan by what --lengths says: "mean=R", drawn by the seed with
/// a mean of R times the longest (0 < R <= 1), or a file of integers, one a sequence. Throws
/// Error(badInput) for anything else.
std::vector<std::byte> askedLengths(const PlanTensor &tensor, const std::string &asked,
                                    uint64_t seed);

/// Throws Error(badInput) that names the sequence whose length is negative or above the longest.
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
/// read.
void checkAskedLengths(const Plan &plan, const std::string &asked);

}  // namespace weft::runtime
