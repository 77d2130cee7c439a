// See Pages.h. A table and its lengths know each other by the number of sequences.
#include "runtime/execute/Pages.h"

#include "kernel/Error.h"
#include "kernel/Pages.h"
#include "kernel/RandomValues.h"
#include "runtime/execute/Executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace weft::runtime {
namespace {

std::vector<int32_t> integersOf(const Executor &executor, int tensor) {
  const std::vector<std::byte> elements = executor.read(tensor);
  std::vector<int32_t> integers(elements.size() / sizeof(int32_t));
  std::memcpy(integers.data(), elements.data(), elements.size());
  return integers;
}

/// A table, and how many of its entries each sequence needs.
struct Table {
  int tensor = -1;
  int64_t sequences = 0, entries = 0, pages = 0, positions = 0;
  std::vector<int64_t> needed;  ///< all where no argument counts tokens of these sequences
};

/// Entries that hold the positions of each sequence: those that its length counts, and those of the
/// new tokens, which are as many for all sequences unless another argument counts them.
void countNeeded(const Executor &executor, std::span<const int> inputs, Table &table) {
  std::vector<int64_t> positions(size_t(table.sequences), 0);
  int64_t left = table.entries * table.positions;
  bool areCounted = false;
  for (const int input : inputs) {
    const PlanTensor &lengths = executor.plan().tensors[size_t(input)];
    if (!lengths.countsTokens || lengths.extents != std::vector{table.sequences} ||
        lengths.range[1] > left)
      continue;
    const std::vector<int32_t> counts = integersOf(executor, input);
    for (size_t sequence = 0; sequence < counts.size(); ++sequence)
      positions[sequence] += std::max(counts[sequence], 0);
    left -= lengths.range[1];
    areCounted = true;
  }
  for (const int64_t count : positions)
    table.needed.push_back(
        areCounted ? std::min((count + left + table.positions - 1) / table.positions, table.entries)
                   : table.entries);
}

std::vector<Table> tablesOf(const Executor &executor, std::span<const int> inputs) {
  std::vector<Table> tables;
  for (const int input : inputs) {
    const PlanTensor &tensor = executor.plan().tensors[size_t(input)];
    if (tensor.pagePositions == 0) continue;
    Table table{.tensor = input,
                .sequences = tensor.extents[0],
                .entries = tensor.extents[1],
                .pages = tensor.range[1] + 1,
                .positions = tensor.pagePositions,
                .needed = {}};
    countNeeded(executor, inputs, table);
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

void handOutPages(Executor &executor, std::span<const int> inputs, uint64_t seed) {
  for (const Table &table : tablesOf(executor, inputs)) {
    const PlanTensor &tensor = executor.plan().tensors[size_t(table.tensor)];
    int64_t needed = 0;
    for (const int64_t own : table.needed) needed += own;
    if (needed > table.pages)
      throw Error::badInput(
          "the sequences need {} pages of {} positions, '{}' has {}: take shorter --lengths, or "
          "compile with --dim f={}",
          needed, table.positions, tensor.logical, table.pages, needed);
    const ShuffledPages shuffled(table.sequences, table.pages,
                                 RandomValues(seed, tensor.logical).bits(0));
    std::vector<int32_t> entries(size_t(table.sequences * table.entries), -1);
    int64_t turn = 0;
    for (int64_t index = 0; index < table.entries; ++index)
      for (int64_t sequence = 0; sequence < table.sequences; ++sequence)
        if (index < table.needed[size_t(sequence)])
          entries[size_t(sequence * table.entries + index)] = int32_t(shuffled.page(turn++));
    executor.write(table.tensor, std::as_bytes(std::span(entries)));
  }
}

void checkPages(const Executor &executor, std::span<const int> inputs, std::string_view where) {
  for (const Table &table : tablesOf(executor, inputs)) {
    const PlanTensor &tensor = executor.plan().tensors[size_t(table.tensor)];
    const std::vector<int32_t> entries = integersOf(executor, table.tensor);
    for (int64_t sequence = 0; sequence < table.sequences; ++sequence)
      for (int64_t index = 0; index < table.needed[size_t(sequence)]; ++index) {
        const int32_t page = entries[size_t(sequence * table.entries + index)];
        if (page >= 0 && page < table.pages) continue;
        throw Error::badInput(
            "{}: page {} of sequence {} of '{}' is {}, none of the {} pages (0 to {}); its length "
            "needs the first {}",
            where, index, sequence, tensor.logical, page, table.pages, table.pages - 1,
            table.needed[size_t(sequence)]);
      }
  }
}

}  // namespace weft::runtime
