// Boxes between memory and shared memory; see BulkCopies.h.
#include "tests/emulate/sm90/BulkCopies.h"

#include <fmt/format.h>

#include <cstring>

namespace weft::emulate {
namespace {

constexpr int64_t chunkBytes = 16;

int64_t bytesOf(const GlobalSide &side) {
  if (!side.map) return side.bytes;
  int64_t bytes = side.map->elementBytes;
  for (int d = 0; d < side.map->dimensions; ++d) bytes *= side.map->box[d];
  return bytes;
}

/// Where 16 bytes lie in shared memory: the swizzle permutes them by bits of their address.
uint32_t swizzledAddress(uint32_t address, int swizzleBytes) {
  const uint32_t mask = swizzleBytes == 0 ? 0 : uint32_t(swizzleBytes / chunkBytes - 1);
  return address ^ (address >> 7 & mask) << 4;
}

/// 16 bytes of a box: their address in shared memory before the swizzle, their place in memory, and
/// how many of its elements are in bounds, of which the first may lie before the tensor.
struct Chunk {
  uint32_t shared;
  std::byte *global;
  int first, end;  ///< elements in bounds
};

/// Visits the box 16 bytes at a time; chunks without any element in bounds have first == end.
template <typename Visit>
void forEachChunk(const GlobalSide &side, uint32_t shared, Visit visit) {
  const EmulatedMap &map = *side.map;
  const int perChunk = int(chunkBytes / map.elementBytes);
  const int64_t rowBytes = int64_t(map.box[0]) * map.elementBytes,
                pitch = map.swizzleBytes == 0 ? rowBytes : map.swizzleBytes;
  int64_t rows = 1;
  for (int d = 1; d < map.dimensions; ++d) rows *= map.box[d];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = side.position[0];
    bool isInside = true;
    int64_t rest = row;
    for (int d = 1; d < map.dimensions; rest /= map.box[d++]) {
      const int64_t index = side.position[size_t(d)] + rest % map.box[d];
      isInside = isInside && index >= 0 && index < map.extents[d];
      offset += index * map.strides[d - 1];
    }
    for (int64_t chunk = 0; chunk * chunkBytes < rowBytes; ++chunk) {
      const int64_t x = side.position[0] + chunk * perChunk;
      const int first = int(std::clamp<int64_t>(-x, 0, perChunk)),
                end = int(std::clamp<int64_t>(map.extents[0] - x, first, perChunk));
      visit(Chunk{.shared = swizzledAddress(uint32_t(shared + row * pitch + chunk * chunkBytes),
                                            map.swizzleBytes),
                  .global = map.start + (offset + chunk * perChunk) * map.elementBytes,
                  .first = isInside ? first : 0,
                  .end = isInside ? end : 0});
    }
  }
}

void addFloat(std::byte *to, const std::byte *from) {
  float sum, added;
  std::memcpy(&sum, to, sizeof sum);
  std::memcpy(&added, from, sizeof added);
  sum += added;
  std::memcpy(to, &sum, sizeof sum);
}

}  // namespace

BulkCopies::BulkCopies(Fibers &fibers, SharedMemory &shared, MemoryBarriers &barriers)
    : fibers(fibers), shared(shared), barriers(barriers) {}

void BulkCopies::reset(DoneAtOnce how) {
  atOnce = how;
  loads.clear();
  groups.assign(size_t(fibers.threadCount()), {Group{}});
}

/// What the driver and the instruction ask for.
void BulkCopies::check(const GlobalSide &side, uint32_t address) {
  if (!side.map) {
    if (address % chunkBytes != 0 || reinterpret_cast<uintptr_t>(side.start) % chunkBytes != 0 ||
        side.bytes % chunkBytes != 0)
      fibers.fail(
          fmt::format("bulk copy of {} bytes at byte {} of shared memory: not aligned to "
                      "16 bytes",
                      side.bytes, address));
    return;
  }
  const EmulatedMap &map = *side.map;
  if (map.dimensions < 2 || map.dimensions > 5) fibers.fail("no tensor map at this address");
  bool isAligned = reinterpret_cast<uintptr_t>(map.start) % chunkBytes == 0 && address % 128 == 0 &&
                   map.box[0] * map.elementBytes % chunkBytes == 0;
  for (int d = 1; d < map.dimensions; ++d)
    isAligned = isAligned && map.strides[d - 1] * map.elementBytes % chunkBytes == 0;
  if (!isAligned)
    fibers.fail(fmt::format("box at byte {} of shared memory, or its map: not aligned", address));
  if (map.swizzleBytes > 0 && map.box[0] * map.elementBytes > map.swizzleBytes)
    fibers.fail("rows of a box are longer than the swizzle's span");
}

void BulkCopies::load(uint32_t to, const GlobalSide &from, uint32_t barrier) {
  check(from, to);
  fibers.progressed();
  loads.push_back({.to = to, .barrier = barrier, .from = from});
  if (atOnce.loads) completeLoad();
}

bool BulkCopies::completeLoad() {
  if (loads.empty()) return false;
  const Load load = loads.back();
  loads.pop_back();
  land(load);
  return true;
}

void BulkCopies::land(const Load &load) {
  const GlobalSide &from = load.from;
  if (!from.map) {
    std::memcpy(shared.accessByPart(load.to, size_t(from.bytes)), from.start, size_t(from.bytes));
  } else {
    const size_t element = size_t(from.map->elementBytes);
    forEachChunk(from, load.to, [&](const Chunk &chunk) {
      std::byte *to = shared.accessByPart(chunk.shared, chunkBytes);
      std::memset(to, 0, chunkBytes);
      if (chunk.first < chunk.end)
        std::memcpy(to + size_t(chunk.first) * element,
                    chunk.global + size_t(chunk.first) * element,
                    size_t(chunk.end - chunk.first) * element);
    });
  }
  barriers.land(load.barrier, bytesOf(from));
}

void BulkCopies::store(const GlobalSide &to, uint32_t from, bool addsFloats) {
  check(to, from);
  auto store = std::make_shared<Store>(Store{.to = to, .from = from, .addsFloats = addsFloats});
  groups[size_t(fibers.runningThread())].back().push_back(store);
  if (atOnce.stores) {
    read(*store);
    write(*store);
  }
}

void BulkCopies::read(Store &store) {
  if (store.isRead) return;
  store.isRead = true;
  if (!store.to.map) {
    const std::byte *from = shared.accessByPart(store.from, size_t(store.to.bytes));
    store.taken.assign(from, from + store.to.bytes);
    return;
  }
  forEachChunk(store.to, store.from, [&](const Chunk &chunk) {
    const std::byte *from = shared.accessByPart(chunk.shared, chunkBytes);
    store.taken.insert(store.taken.end(), from, from + chunkBytes);
  });
}

/// Elements out of bounds are left out, but the innermost dimension ends at 16 bytes.
void BulkCopies::write(Store &store) {
  read(store);
  if (store.isWritten) return;
  store.isWritten = true;
  const std::byte *from = store.taken.data();
  const auto put = [&](std::byte *to, int64_t bytes) {
    if (!store.addsFloats) std::memcpy(to, from, size_t(bytes));
    else
      for (size_t at = 0; at < size_t(bytes); at += sizeof(float)) addFloat(to + at, from + at);
  };
  if (!store.to.map) return put(store.to.start, store.to.bytes);
  forEachChunk(store.to, store.from, [&](const Chunk &chunk) {
    if (chunk.first == 0 && chunk.end > 0) put(chunk.global, chunkBytes);
    from += chunkBytes;
  });
  store.taken.clear();
}

void BulkCopies::commitStores() { groups[size_t(fibers.runningThread())].emplace_back(); }

void BulkCopies::waitForStores(int64_t pending, bool toReadOnly, const SourceLine &at) {
  std::deque<Group> &own = groups[size_t(fibers.runningThread())];
  const int64_t committed = int64_t(own.size()) - 1;
  const auto isOpen = [&](const Store &store) {
    return !store.isRead || (!toReadOnly && !store.isWritten);
  };
  for (int64_t group = 0; group < committed - pending; ++group)
    for (const std::shared_ptr<Store> &store : own[size_t(group)]) {
      store->mustRead = true;
      store->mustWrite = store->mustWrite || !toReadOnly;
    }
  for (int64_t group = 0; group < committed - pending; ++group)
    for (size_t n = 0; n < own[size_t(group)].size(); ++n)
      while (isOpen(*own[size_t(group)][n])) fibers.wait("bulk stores", 0, at);
  if (toReadOnly) return;
  for (int64_t group = 0; group < committed - pending; ++group) own.pop_front();
}

bool BulkCopies::completeStore() {
  for (std::deque<Group> &ofThread : groups)
    for (Group &group : ofThread)
      for (const std::shared_ptr<Store> &store : group) {
        if (store->mustWrite && !store->isWritten) return write(*store), true;
        if (store->mustRead && !store->isRead) return read(*store), true;
      }
  return false;
}

void BulkCopies::endThread(int thread) {
  for (const Group &group : groups[size_t(thread)])
    for (const std::shared_ptr<Store> &store : group)
      if (!store->isRead)
        fibers.fail(
            fmt::format("thread {} ends before its bulk store of byte {} has read shared "
                        "memory",
                        thread, store->from));
}

void BulkCopies::endBlock() {
  if (!loads.empty())
    fibers.fail(fmt::format("the block ends while a bulk load to byte {} is outstanding",
                            loads.front().to));
  for (std::deque<Group> &ofThread : groups)
    for (Group &group : ofThread)
      for (const std::shared_ptr<Store> &store : group) write(*store);
}

}  // namespace weft::emulate
