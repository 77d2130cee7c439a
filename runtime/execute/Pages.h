// Tables of pages that caches of keys and values lie in (kernel/Pages.h): handed out to the lengths
// of a run, and checked against them. Kernels read zeros through entries that are none of the
// pages, and drop what they would write there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::runtime {

class Executor;

/// Of every table among these inputs: pages for the positions that each sequence has with its new
/// tokens, in an order by the seed, -1 for all others. The lengths are those that the executor
/// holds. Throws Error(badInput) where there are not enough pages.
void handOutPages(Executor &executor, std::span<const int> inputs, uint64_t seed);

/// Throws Error(badInput) that names the sequence, and its page by number, whose entry is none of
/// the pages though its length needs it. `where`: what the table was read from.
void checkPages(const Executor &executor, std::span<const int> inputs, std::string_view where);

}  // namespace weft::runtime
