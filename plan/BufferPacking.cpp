// Placing buffers by their lifetimes; see BufferPacking.h.
#include "plan/BufferPacking.h"

#include "kernel/Configuration.h"
#include "plan/PlanLiveness.h"
#include "plan/PlanMemory.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

namespace weft {
namespace {

/// A buffer with the kernels that use it: from its first to its last user.
struct Block {
  int buffer = -1;
  int64_t bytes = 0;
  int first = std::numeric_limits<int>::max(), last = -1;
  std::set<EntryPointKind> entryPoints = {};  ///< that use it
  bool isWorkspace = false;     ///< aligned as the plan's workspace is, not as a caller's result
  std::vector<int> users = {};  ///< ascending
  bool isUsed() const { return last >= 0; }
  bool meets(const Block &other) const { return first <= other.last && other.first <= last; }
};

/// Which buffers must not share bytes: those that are in use at one time and, of a plan with
/// concurrent, those that would make kernels wait for each other that are of different slices, or
/// stand near each other, and otherwise might run at once. A table, because packing asks for every
/// pair many times.
class Neighbours {
public:
  Neighbours(const Plan &plan, const PlanMemory &memory, const std::vector<Block> &blocks)
      : count(blocks.size()), areApart(count * count, false) {
    std::optional<KernelOrder> order;  // what data ask for, without shared memory
    if (plan.concurrent)
      order.emplace(plan.kernels.size(), conflicts(plan, liveRangesOf(plan, memory)));
    for (const Block &a : blocks)
      for (const Block &b : blocks)
        if (a.isUsed() && b.isUsed())
          areApart[place(a, b)] =
              a.meets(b) || (order && (a.last < b.first ? delays(plan, *order, a, b)
                                                        : delays(plan, *order, b, a)));
  }
  bool apart(const Block &a, const Block &b) const { return areApart[place(a, b)]; }
  /// Where those of a block begin, by buffer.
  size_t rowOf(const Block &block) const { return size_t(block.buffer) * count; }
  bool isApart(size_t row, size_t buffer) const { return areApart[row + buffer]; }

private:
  /// Places between kernels that run at about the same time. Sharing between kernels further apart
  /// costs no time, and saves most of the memory.
  static constexpr int reach = 8;

  static bool delays(const Plan &plan, const KernelOrder &order, const Block &earlier,
                     const Block &later) {
    for (const int first : earlier.users)
      for (const int second : later.users)
        if ((second - first < reach ||
             areOfDifferentSlices(plan.kernels[size_t(first)], plan.kernels[size_t(second)])) &&
            !order.waits(second, first))
          return true;
    return false;
  }
  size_t place(const Block &a, const Block &b) const {
    return size_t(a.buffer) * count + size_t(b.buffer);
  }

  size_t count;
  std::vector<bool> areApart;
};

/// With what is asked of its block for every other block, so that it lies together.
struct Placed {
  const Block *block = nullptr;
  int64_t offset = 0;
  int64_t end = offset + block->bytes;
  size_t buffer = size_t(block->buffer);
};
/// Ascending by offset.
using AllocationSearch = std::vector<Placed>;

void insert(AllocationSearch &placed, Placed one) {
  placed.insert(std::ranges::upper_bound(placed, one.offset, {}, &Placed::offset), one);
}

/// A result that may hold temporaries until its first use.
struct Host {
  int result = -1;  ///< index into Plan::tensors
  Block own;
  AllocationSearch placed = {};
  /// Callers bring a result where it is computed, so what lies in it must not be used anywhere
  /// else.
  bool mayHold(const Block &block, const Neighbours &neighbours) const {
    return !block.isWorkspace && block.last < own.first && block.entryPoints.size() <= 1 &&
           block.entryPoints == own.entryPoints && !neighbours.apart(block, own);
  }
};

/// Blocks by buffer, of all buffers that kernels use.
std::vector<Block> allBlocks(const Plan &plan, const PlanMemory &memory) {
  std::vector<Block> blocks(memory.buffers().size());
  for (size_t index = 0; index < blocks.size(); ++index)
    blocks[index] = {.buffer = int(index), .bytes = memory.buffers()[index].bytes};
  std::vector<EntryPointKind> entryOf(plan.kernels.size());
  for (const auto &[kind, kernels] : plan.entryPoints)
    for (const int kernel : kernels) entryOf[size_t(kernel)] = kind;
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    const PlanKernel &one = plan.kernels[kernel];
    const auto use = [&](int buffer) {
      Block &block = blocks[size_t(buffer)];
      block.first = std::min(block.first, int(kernel));
      block.last = int(kernel);
      if (block.users.empty() || block.users.back() != int(kernel))
        block.users.push_back(int(kernel));
      block.entryPoints.insert(entryOf[kernel]);
    };
    if (one.family.isView()) continue;
    for (const int input : one.inputs) use(plan.tensors[size_t(input)].buffer);
    for (const int output : one.outputs) use(plan.tensors[size_t(output)].buffer);
    if (one.workspaceBuffer < 0) continue;
    use(one.workspaceBuffer);
    blocks[size_t(one.workspaceBuffer)].isWorkspace = true;
  }
  return blocks;
}

using Blocks = std::vector<const Block *>;

Blocks temporaries(const std::vector<Block> &blocks, const PlanMemory &memory) {
  Blocks found;
  for (const Block &block : blocks)
    if (block.isUsed() && memory.buffers()[size_t(block.buffer)].kind == BufferKind::temporary)
      found.push_back(&block);
  return found;
}

std::vector<int64_t> liveBytes(const Blocks &blocks, size_t kernels) {
  std::vector<int64_t> live(kernels);
  for (const Block *block : blocks)
    for (int kernel = block->first; kernel <= block->last; ++kernel)
      live[size_t(kernel)] += block->bytes;
  return live;
}

/// The offset within `limit` bytes where the block overlaps none that it must stay apart from and
/// the gap it leaves is smallest; behind all of those if no gap takes it; -1 if that is beyond the
/// limit.
int64_t bestFit(const Block &block, const AllocationSearch &placed, const Neighbours &neighbours,
                int64_t limit = std::numeric_limits<int64_t>::max()) {
  int64_t end = 0, best = -1, bestGap = std::numeric_limits<int64_t>::max();
  const size_t row = neighbours.rowOf(block);
  for (const Placed &other : placed) {
    if (!neighbours.isApart(row, other.buffer)) continue;
    const int64_t gap = other.offset - end;
    if (gap >= block.bytes && gap < bestGap) best = end, bestGap = gap;
    end = std::max(end, other.end);
  }
  if (best >= 0) return best;
  return end + block.bytes <= limit ? end : -1;
}

struct Packing {
  AllocationSearch placed;
  int64_t bytes = 0;
};

/// Nothing where it takes more than `limit` bytes.
std::optional<Packing> packInOrder(const Blocks &blocks, const Neighbours &neighbours,
                                   int64_t limit) {
  Packing packing;
  packing.placed.reserve(blocks.size());
  for (const Block *block : blocks) {
    const int64_t offset = bestFit(*block, packing.placed, neighbours);
    if (offset + block->bytes > limit) return std::nullopt;
    insert(packing.placed, {.block = block, .offset = offset});
    packing.bytes = std::max(packing.bytes, offset + block->bytes);
  }
  return packing;
}

/// The best of several orders: by size, by size times length of life, as the kernels come, and
/// backwards. Nothing where each takes more than `limit` bytes: to know that takes less time.
std::optional<Packing> pack(Blocks blocks, const Neighbours &neighbours,
                            int64_t limit = std::numeric_limits<int64_t>::max()) {
  using Key = std::tuple<int64_t, int, int>;
  const std::function<Key(const Block *)> keys[] = {
      [](const Block *block) { return Key(-block->bytes, block->first, block->buffer); },
      [](const Block *block) {
        return Key(-block->bytes * (block->last - block->first + 1), block->first, block->buffer);
      },
      [](const Block *block) { return Key(block->first, -block->last, block->buffer); },
      [](const Block *block) { return Key(-block->last, block->first, block->buffer); },
  };
  std::optional<Packing> best;
  for (const auto &key : keys) {
    std::ranges::sort(blocks, {}, key);
    std::optional<Packing> packing =
        packInOrder(blocks, neighbours, best ? best->bytes - 1 : limit);
    if (packing) best = std::move(packing);
  }
  return best;
}

/// Results that a caller brings and that are alone in their buffers.
std::vector<Host> hostsOf(const Plan &plan, const PlanMemory &memory,
                          const std::vector<Block> &blocks) {
  std::vector<Host> hosts;
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    if (tensor.role != TensorRole::result || !memory.isDirect(int(index)) ||
        !blocks[size_t(tensor.buffer)].isUsed())
      continue;
    hosts.push_back({.result = int(index), .own = blocks[size_t(tensor.buffer)]});
    hosts.back().own.bytes = spanBytes(tensor);
  }
  return hosts;
}

/// Moves blocks into results, first those that are in use when most is, and longest so, and back
/// again those that do not make the workspace smaller. Returns what stays.
Blocks fillHosts(Blocks blocks, std::vector<Host> &hosts, const Neighbours &neighbours,
                 size_t kernels) {
  const std::vector<int64_t> live = liveBytes(blocks, kernels);
  const auto key = [&](const Block *block) {
    const auto begin = live.begin() + block->first, end = live.begin() + block->last + 1;
    const int64_t most = *std::max_element(begin, end);
    return std::tuple(-most, -std::count(begin, end, most), -block->bytes, block->buffer);
  };
  std::ranges::sort(blocks, {}, key);
  std::vector<std::pair<const Block *, Host *>> moved;
  Blocks kept;
  for (const Block *block : blocks) {
    const auto fit = [&](const Host &host) {
      return bestFit(*block, host.placed, neighbours, host.own.bytes);
    };
    const auto takes = [&](const Host &host) {
      return host.mayHold(*block, neighbours) && fit(host) >= 0;
    };
    const auto host = std::ranges::find_if(hosts, takes);
    if (host == hosts.end()) {
      kept.push_back(block);
      continue;
    }
    insert(host->placed, {.block = block, .offset = fit(*host)});
    moved.emplace_back(block, &*host);
  }
  int64_t bytes = pack(kept, neighbours)->bytes;
  for (const auto &[block, host] : moved) {
    kept.push_back(block);
    if (const std::optional<Packing> with = pack(kept, neighbours, bytes); !with) kept.pop_back();
    else
      std::erase_if(host->placed, [&](const Placed &one) { return one.block == block; }),
          bytes = with->bytes;
  }
  return kept;
}

}  // namespace

void packBuffers(Plan &plan) {
  plan.memoryPlan.clear();
  const PlanMemory memory(plan);
  const std::vector<Block> blocks = allBlocks(plan, memory);
  std::vector<Host> hosts = hostsOf(plan, memory, blocks);
  const Neighbours neighbours(plan, memory, blocks);
  const Packing packing = *pack(
      fillHosts(temporaries(blocks, memory), hosts, neighbours, plan.kernels.size()), neighbours);
  for (const Placed &one : packing.placed)
    plan.memoryPlan.push_back({.buffer = one.block->buffer, .in = {}, .offset = one.offset});
  for (const Host &host : hosts)
    for (const Placed &one : host.placed)
      plan.memoryPlan.push_back(
          {.buffer = one.block->buffer, .in = {.result = host.result}, .offset = one.offset});
  std::ranges::sort(plan.memoryPlan, {}, &BufferAllocation::buffer);
  plan.workspaceBytes = packing.bytes;
}

std::vector<int64_t> liveBytes(const Plan &plan) {
  const PlanMemory memory(plan);
  const std::vector<Block> blocks = allBlocks(plan, memory);
  return liveBytes(temporaries(blocks, memory), plan.kernels.size());
}

}  // namespace weft
