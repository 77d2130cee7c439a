// Fibers and their scheduler. A fiber starts on a separate stack by ucontext and then switches by
// _setjmp/_longjmp, which save no signal mask and so make no system call. Invariant: a switch
// happens only through Block::yield().
#include "tests/emulate/Emulator.h"

#include "tests/emulate/sm90/AsynchronousParts.h"

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <map>
#include <memory>
#include <vector>

#include <ucontext.h>

namespace weft::emulate {

Dim3 currentThread, currentBlock, threadsPerBlock, blocksPerGrid;

namespace {

constexpr size_t stackBytes = 128 << 10;
constexpr int warpSize = 32;

/// Lanes that exchange values under one mask. Two buffers: the fastest lane may give its next value
/// before the slowest has read the previous one.
struct Channel {
  uint64_t generation = 0;
  unsigned arrived = 0;
  alignas(16) std::byte slots[2][warpSize][mostExchanged];
};

struct Thread {
  Dim3 index;
  int number = 0;
  bool started = false, finished = false;
  std::jmp_buf resume;
  ucontext_t entry;
  std::unique_ptr<std::byte[]> stack;
  const char *waiting = nullptr;  ///< "barrier" or "exchange", with its place
  const char *file = nullptr;
  int line = 0;
  uint32_t subject = 0;  ///< of an asynchronous part (Fibers::wait)
};

struct Warp {
  unsigned live = 0;
  Channel whole;                         ///< of all lanes
  std::map<unsigned, Channel> channels;  ///< of others, by mask
};

/// What asynchronous parts found while no fiber ran.
struct Failure {
  std::string error;
};

/// The running block. One instance at a time: kernels call free functions that have no other way to
/// find it.
class Block : public Fibers {
public:
  Block(int threads, const std::function<void()> &body, std::span<std::byte> dynamicShared);
  /// Runs until every thread has ended, or waits at a cluster barrier.
  std::string run(Schedule schedule);
  void barrier(const char *file, int line);
  void clusterBarrier(const char *file, int line);
  void leaveClusterBarrier();
  bool hasEnded() const { return finished == int(threads.size()); }
  bool waitsForCluster() const { return atClusterBarrier == int(threads.size()); }
  const std::byte *exchange(unsigned mask, const void *mine, size_t size, const char *file,
                            int line);
  void reset(Schedule schedule);

  int runningThread() const override { return current->number; }
  int threadCount() const override { return int(threads.size()); }
  void wait(const char *what, uint32_t subject, const SourceLine &at) override {
    current->subject = subject;
    wait(what, at.file, at.line);
  }
  void poll(const char *what, const SourceLine &at) override;
  void progressed() override { ++progress, polls = 0; }
  [[noreturn]] void fail(const std::string &message) override;
  std::span<std::byte> shared() const override { return dynamic; }

  static Block *running;
  AsynchronousParts &asynchronousParts();

private:
  static void enter();
  std::string runThreads(Schedule schedule);
  void resume(Thread &thread);
  void wait(const char *what, const char *file, int line);
  std::string describeDeadlock() const;
  std::string describe(const Thread &thread) const {
    return parts ? parts->describe(thread.waiting, thread.subject) : thread.waiting;
  }

  const std::function<void()> &body;
  std::span<std::byte> dynamic;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::jmp_buf scheduler;
  Thread *current = nullptr;
  bool isInFiber = false;
  bool hasPolled = false;  ///< a thread, since all were resumed last
  Schedule order = Schedule::ascending;
  std::unique_ptr<AsynchronousParts> parts;  ///< where a thread has used any
  uint64_t barrierGeneration = 0, clusterGeneration = 0, progress = 0, polls = 0;
  int atBarrier = 0, atClusterBarrier = 0, finished = 0;
  std::string error;
};

Block *Block::running = nullptr;

Block::Block(int count, const std::function<void()> &body, std::span<std::byte> dynamicShared)
    : body(body), dynamic(dynamicShared), threads(count) {
  for (int n = 0; n < count; ++n) {
    const unsigned x = threadsPerBlock.x, y = threadsPerBlock.y;
    threads[n].number = n;
    threads[n].index = {n % x, n / x % y, n / (x * y)};
    threads[n].stack = std::make_unique_for_overwrite<std::byte[]>(stackBytes);
  }
  warps.resize((count + warpSize - 1) / warpSize);
}

/// Loads that land at once take the place of operands that are released too early; late ones find
/// products that do not wait for them.
AsynchronousParts &Block::asynchronousParts() {
  if (!parts) {
    parts = std::make_unique<AsynchronousParts>(*this);
    parts->reset({.loads = order == Schedule::ascending,
                  .products = order == Schedule::descending,
                  .stores = order == Schedule::descending});
  }
  return *parts;
}

/// Makes the block ready to run again for the next block index; stacks are kept.
void Block::reset(Schedule schedule) {
  barrierGeneration = clusterGeneration = progress = polls = 0;
  atBarrier = atClusterBarrier = finished = 0;
  for (Thread &thread : threads) thread.started = thread.finished = false;
  order = schedule;
  parts.reset();
  for (size_t w = 0; w < warps.size(); ++w) {
    const int lanes = std::min<int>(warpSize, int(threads.size()) - int(w) * warpSize);
    warps[w].live = lanes == warpSize ? ~0u : (1u << lanes) - 1;
    warps[w].whole.generation = warps[w].whole.arrived = 0;
    warps[w].channels.clear();
  }
}

void Block::enter() {
  Block &block = *running;
  block.body();
  Thread &self = *block.current;
  if (block.parts) block.parts->endThread(self.number);
  self.finished = true;
  block.warps[self.number / warpSize].live &= ~(1u << self.number % warpSize);
  ++block.finished;
  ++block.progress;
  _longjmp(block.scheduler, 1);
}

/// Runs a thread until it yields or ends.
void Block::resume(Thread &thread) {
  current = &thread;
  currentThread = thread.index;
  isInFiber = true;
  if (_setjmp(scheduler)) {
    isInFiber = false;
    return;
  }
  if (thread.started) _longjmp(thread.resume, 1);
  thread.started = true;
  getcontext(&thread.entry);
  thread.entry.uc_stack.ss_sp = thread.stack.get();
  thread.entry.uc_stack.ss_size = stackBytes;
  thread.entry.uc_link = nullptr;
  makecontext(&thread.entry, &Block::enter, 0);
  setcontext(&thread.entry);
}

/// Hands over to the other threads; returns when this one is resumed.
void Block::wait(const char *what, const char *file, int line) {
  Thread &self = *current;
  self.waiting = what;
  self.file = file;
  self.line = line;
  if (!_setjmp(self.resume)) _longjmp(scheduler, 1);
}

void Block::poll(const char *what, const SourceLine &at) {
  constexpr uint64_t most = 1 << 14;
  if (++polls > most)
    fail(fmt::format("thread {} waits for memory that nobody writes: {} at {}:{}", current->number,
                     what, at.file, at.line));
  hasPolled = true;
  wait(what, at.file, at.line);
}

void Block::fail(const std::string &message) {
  if (!isInFiber) throw Failure{message};
  error = message;
  while (true) wait("an error", "", 0);
}

std::string Block::run(Schedule schedule) {
  running = this;
  try {
    if (std::string found = runThreads(schedule); !found.empty()) return found;
    if (parts && hasEnded()) parts->endBlock();
  } catch (const Failure &failure) {
    return failure.error;
  }
  return {};
}

std::string Block::runThreads(Schedule schedule) {
  const int count = int(threads.size());
  uint64_t before = ~0ull;
  while (finished < count && !waitsForCluster() && error.empty()) {
    if (progress == before && !(parts && parts->completeOne()) && !hasPolled)
      return describeDeadlock();
    before = progress, hasPolled = false;
    for (int n = 0; n < count && error.empty(); ++n) {
      Thread &next = threads[schedule == Schedule::ascending ? n : count - 1 - n];
      if (!next.finished) resume(next);
    }
  }
  return error;
}

void Block::barrier(const char *file, int line) {
  const uint64_t mine = barrierGeneration;
  ++progress;
  if (++atBarrier == int(threads.size())) {
    for (const Thread &other : threads)
      if (&other != current && (other.line != line || std::string_view(other.file) != file))
        error = fmt::format("diverged barrier: thread {} waits at {}:{}, thread {} at {}:{}",
                            other.number, other.file, other.line, current->number, file, line);
    atBarrier = 0;
    ++barrierGeneration;
  }
  while (barrierGeneration == mine || !error.empty()) wait("barrier", file, line);
}

void Block::clusterBarrier(const char *file, int line) {
  const uint64_t mine = clusterGeneration;
  ++progress;
  ++atClusterBarrier;
  while (clusterGeneration == mine) wait("cluster barrier", file, line);
}

void Block::leaveClusterBarrier() {
  atClusterBarrier = 0;
  ++clusterGeneration;
}

const std::byte *Block::exchange(unsigned mask, const void *mine, size_t size, const char *file,
                                 int line) {
  Thread &self = *current;
  Warp &warp = warps[self.number / warpSize];
  const int lane = self.number % warpSize;
  if (size > mostExchanged || !(mask >> lane & 1)) {
    error = fmt::format("thread {} at {}:{}: exchange of {} bytes with mask {:#x}", self.number,
                        file, line, size, mask);
    wait("exchange", file, line);
  }
  Channel &channel = mask == ~0u ? warp.whole : warp.channels[mask];
  const uint64_t generation = channel.generation;
  auto &slots = channel.slots[generation % 2];
  if (channel.arrived == 0) std::memset(slots, 0xFF, sizeof slots);
  std::memcpy(slots[lane], mine, size);
  channel.arrived |= 1u << lane;
  ++progress;
  while (channel.generation == generation) {
    if ((mask & warp.live & ~channel.arrived) == 0) {
      ++channel.generation;
      channel.arrived = 0;
      ++progress;
    } else {
      wait("exchange", file, line);
    }
  }
  return slots[0];
}

template <size_t size>
void copySlots(const std::byte *slots, void *all) {
  for (int source = 0; source < warpSize; ++source)
    std::memcpy(static_cast<std::byte *>(all) + source * size, slots + source * mostExchanged,
                size);
}

std::string Block::describeDeadlock() const {
  std::string text = fmt::format("diverged: {} of {} threads finished", finished, threads.size());
  std::map<std::string, std::vector<int>> waiting;
  for (const Thread &thread : threads)
    if (!thread.finished)
      waiting[fmt::format("{} {}:{}", describe(thread), thread.file, thread.line)].push_back(
          thread.number);
  for (const auto &[place, numbers] : waiting)
    text +=
        fmt::format(", {} wait at {} (first thread {})", numbers.size(), place, numbers.front());
  return text;
}

/// An access outside every buffer hits a protected page, and what the sanitizers find ends in an
/// illegal instruction; the handler leaves the fiber and ends the launch.
sigjmp_buf accessFault;
void onFault(int signal) { siglongjmp(accessFault, signal); }

std::string_view describeSignal(int signal) {
  if (signal == SIGILL) return "misaligned vector access, or an index beyond a local array";
  return signal == SIGFPE ? "integer division by zero" : "access outside every buffer";
}

class FaultHandler {
public:
  FaultHandler() : stack(std::make_unique<std::byte[]>(stackBytes)) {
    stack_t alternate{};
    alternate.ss_sp = stack.get();
    alternate.ss_size = stackBytes;
    sigaltstack(&alternate, &previousStack);
    struct sigaction action {};
    action.sa_handler = onFault;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (size_t n = 0; n < signals.size(); ++n) sigaction(signals[n], &action, &previous[n]);
  }
  ~FaultHandler() {
    for (size_t n = 0; n < signals.size(); ++n) sigaction(signals[n], &previous[n], nullptr);
    sigaltstack(&previousStack, nullptr);
  }

private:
  std::unique_ptr<std::byte[]> stack;
  stack_t previousStack{};
  static constexpr std::array<int, 4> signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE};
  std::array<struct sigaction, signals.size()> previous{};
};

Dim3 dim3(const std::array<int64_t, 3> &extents) {
  return {unsigned(extents[0]), unsigned(extents[1]), unsigned(extents[2])};
}

/// Neighbouring blocks along x that run together (one, where there are no clusters). The running
/// block's shared memory lies where the kernel's variables are, that of the others in `images`.
class Cluster {
public:
  Cluster(const Grid &grid, const std::function<void()> &thread)
      : shared(grid.shared), dynamic(grid.dynamicShared) {
    const int threads = int(grid.threads[0] * grid.threads[1] * grid.threads[2]);
    for (int64_t rank = 0; rank < grid.cluster; ++rank)
      blocks.push_back(std::make_unique<Block>(threads, thread, dynamic));
    images.assign(blocks.size(), std::vector<std::byte>(shared.size()));
  }

  std::string run(Schedule schedule, Dim3 first);
  const std::byte *addressOf(const void *own, int rank) const {
    const auto offset = static_cast<const std::byte *>(own) - shared.data();
    return (rank == current ? shared.data() : images.at(size_t(rank)).data()) + offset;
  }

  std::byte *dynamicShared() const { return dynamic.data(); }

  static Cluster *running;

private:
  std::string runBlock(int rank, Schedule schedule);
  int count() const { return int(blocks.size()); }

  std::span<std::byte> shared, dynamic;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::vector<std::byte>> images;
  int current = 0;
};

Cluster *Cluster::running = nullptr;

std::string Cluster::runBlock(int rank, Schedule schedule) {
  Block &block = *blocks[rank];
  current = rank;
  std::copy(images[rank].begin(), images[rank].end(), shared.begin());
  std::fill(dynamic.begin(), dynamic.end(), std::byte{0xFF});
  std::string error = block.run(schedule);
  std::copy(shared.begin(), shared.end(), images[rank].begin());
  if (block.hasEnded()) std::fill(images[rank].begin(), images[rank].end(), std::byte{0xFF});
  return error;
}

std::string Cluster::run(Schedule schedule, Dim3 first) {
  running = this;
  for (int rank = 0; rank < count(); ++rank) {
    blocks[rank]->reset(schedule);
    std::fill(images[rank].begin(), images[rank].end(), std::byte{0xFF});
  }
  const auto waits = [](const auto &block) { return block->waitsForCluster(); };
  while (true) {
    for (int n = 0; n < count(); ++n) {
      const int rank = schedule == Schedule::ascending ? n : count() - 1 - n;
      currentBlock = {first.x + unsigned(rank), first.y, first.z};
      if (std::string error = runBlock(rank, schedule); !error.empty())
        return fmt::format("block ({}, {}, {}): {}", currentBlock.x, currentBlock.y, currentBlock.z,
                           error);
    }
    if (std::none_of(blocks.begin(), blocks.end(), waits)) return {};
    if (!std::all_of(blocks.begin(), blocks.end(), waits))
      return fmt::format(
          "cluster at block ({}, {}, {}): some blocks ended while others wait for them", first.x,
          first.y, first.z);
    for (const auto &block : blocks) block->leaveClusterBarrier();
  }
}

std::string runBlocks(const Grid &grid, Schedule schedule, Cluster &cluster) {
  if (grid.cluster > 1 && !grid.dynamicShared.empty())
    return "blocks of a cluster have no dynamic shared memory here";
  if (blocksPerGrid.x % grid.cluster != 0)
    return fmt::format("{} blocks are no whole clusters of {}", blocksPerGrid.x, grid.cluster);
  for (const auto &[x, y, z] : grid.only)
    if (std::string error = cluster.run(schedule, {x - x % unsigned(grid.cluster), y, z});
        !error.empty())
      return error;
  if (!grid.only.empty()) return {};
  for (unsigned z = 0; z < blocksPerGrid.z; ++z)
    for (unsigned y = 0; y < blocksPerGrid.y; ++y)
      for (unsigned x = 0; x < blocksPerGrid.x; x += unsigned(grid.cluster))
        if (std::string error = cluster.run(schedule, {x, y, z}); !error.empty()) return error;
  return {};
}

}  // namespace

void barrier(const char *file, int line) { Block::running->barrier(file, line); }

void clusterBarrier(const char *file, int line) { Block::running->clusterBarrier(file, line); }

void loadFromBlock(const void *own, int rank, void *value, size_t size) {
  std::memcpy(value, Cluster::running->addressOf(own, rank), size);
}

AsynchronousParts &asynchronousParts() { return Block::running->asynchronousParts(); }

void *dynamicShared() { return Cluster::running->dynamicShared(); }

const std::byte *exchange(unsigned mask, const void *mine, size_t size, const char *file,
                          int line) {
  return Block::running->exchange(mask, mine, size, file, line);
}

void exchange(unsigned mask, const void *mine, size_t size, void *all, const char *file, int line) {
  const std::byte *slots = exchange(mask, mine, size, file, line);
  switch (size) {  // copies of a known size are single instructions
    case sizeof(uint32_t): return copySlots<sizeof(uint32_t)>(slots, all);
    case sizeof(uint64_t): return copySlots<sizeof(uint64_t)>(slots, all);
    case 16: return copySlots<16>(slots, all);  // a row of ldmatrix
    default:
      for (int source = 0; source < warpSize; ++source)
        std::memcpy(static_cast<std::byte *>(all) + source * size, slots + source * mostExchanged,
                    size);
  }
}

std::string run(const Grid &grid, Schedule schedule, const std::function<void()> &thread) {
  threadsPerBlock = dim3(grid.threads);
  blocksPerGrid = dim3(grid.blocks);
  Cluster cluster(grid, thread);
  const FaultHandler handler;
  if (const int signal = sigsetjmp(accessFault, 1))
    return fmt::format("block ({}, {}, {}) thread ({}, {}, {}): {}", currentBlock.x, currentBlock.y,
                       currentBlock.z, currentThread.x, currentThread.y, currentThread.z,
                       describeSignal(signal));
  return runBlocks(grid, schedule, cluster);
}

}  // namespace weft::emulate
