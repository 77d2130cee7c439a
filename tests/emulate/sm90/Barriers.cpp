// Phases of barriers; see Barriers.h.
#include "tests/emulate/sm90/Barriers.h"

#include <fmt/format.h>

#include <cstring>

namespace weft::emulate {
namespace {

constexpr int warpSize = 32;

uint64_t markOf(uint32_t address) { return 0xB0A771E5'00000000u | address; }

}  // namespace

void MemoryBarriers::initialize(uint32_t address, int64_t arrivals) {
  if (address % 8 != 0 || arrivals < 1)
    fibers.fail(fmt::format("mbarrier of {} arrivals at byte {}", arrivals, address));
  const uint64_t mark = markOf(address);
  std::memcpy(shared.load(address, sizeof mark), &mark, sizeof mark);
  const int number = int(barriers.size());
  barriers.insert_or_assign(address,
                            Barrier{.number = number, .arrivals = arrivals, .missing = arrivals});
}

MemoryBarriers::Barrier &MemoryBarriers::at(uint32_t address) {
  const auto found = barriers.find(address);
  if (found == barriers.end())
    fibers.fail(fmt::format("thread {}: no mbarrier was initialized at byte {} of shared memory",
                            fibers.runningThread(), address));
  const uint64_t mark = markOf(address);
  if (std::memcmp(shared.load(address, sizeof mark), &mark, sizeof mark) != 0)
    fibers.fail(fmt::format("{}: something was written over it", describe(address)));
  return found->second;
}

void MemoryBarriers::endPhaseIfComplete(Barrier &barrier) {
  fibers.progressed();
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.missing = barrier.arrivals;
}

void MemoryBarriers::expect(uint32_t address, int64_t bytes) { at(address).bytes += bytes; }

void MemoryBarriers::arrive(uint32_t address) {
  Barrier &barrier = at(address);
  if (barrier.missing == 0)
    fibers.fail(fmt::format("thread {} arrives once too often at {}", fibers.runningThread(),
                            describe(address)));
  --barrier.missing;
  endPhaseIfComplete(barrier);
}

void MemoryBarriers::land(uint32_t address, int64_t bytes) {
  Barrier &barrier = at(address);
  barrier.bytes -= bytes;
  endPhaseIfComplete(barrier);
}

bool MemoryBarriers::hasEnded(uint32_t address, uint32_t parity) {
  if (parity > 1) fibers.fail(fmt::format("parity {} of {}", parity, describe(address)));
  return (at(address).phase & 1) != parity;
}

void MemoryBarriers::wait(uint32_t address, uint32_t parity, const SourceLine &source) {
  while (!hasEnded(address, parity)) fibers.wait("mbarrier", address, source);
}

std::string MemoryBarriers::describe(uint32_t address) const {
  const Barrier &barrier = barriers.at(address);
  return fmt::format(
      "mbarrier {} at byte {}, phase {}: {} of {} arrivals missing, {} bytes outstanding",
      barrier.number, address, barrier.phase, barrier.missing, barrier.arrivals, barrier.bytes);
}

void NamedBarriers::arrive(uint32_t name, int64_t threads, bool waits, const SourceLine &at) {
  if (name < 1 || name >= barriers.size() || threads < 1 || threads % warpSize != 0)
    fibers.fail(fmt::format("named barrier {} of {} threads", name, threads));
  Barrier &barrier = barriers[name];
  if (barrier.arrived > 0 && barrier.expected != threads)
    fibers.fail(fmt::format("thread {} expects {} threads at {}", fibers.runningThread(), threads,
                            describe(name)));
  barrier.expected = threads;
  const uint64_t phase = barrier.phase;
  fibers.progressed();
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.phase;
  }
  while (waits && barrier.phase == phase) fibers.wait("named barrier", name, at);
}

std::string NamedBarriers::describe(uint32_t name) const {
  const Barrier &barrier = barriers.at(name);
  return fmt::format("named barrier {}, phase {}: {} of {} threads arrived", name, barrier.phase,
                     barrier.arrived, barrier.expected);
}

}  // namespace weft::emulate
