// WGMMA of a block of sm_90a: asynchronous products D[64 x n] += A[64 x k] B[k x n] of warpgroups.
//
//   issue   the accumulators of the thread become signalling NaNs. When all 128 threads have issued
//           an instruction it may run: at once, or as late as any thread can go on without it
//   run     in order; operands in shared memory are read now, those in registers were at issue
//   wait    hands a thread the accumulators that no later instruction of it is still to change
//
// So accumulators that are read too early are NaNs, those written too early are found, and operands
// released too early are read after others took their place.
#pragma once

#include "kernel/DType.h"
#include "tests/emulate/sm90/SharedMemory.h"

#include <array>
#include <deque>
#include <memory>
#include <vector>

namespace weft::emulate {

/// What one instruction says beside its registers: equal in all threads of a warpgroup.
struct WgmmaInstruction {
  DType typeA = DType::f16, typeB = DType::f16;
  int n = 0, k = 0;
  bool accumulates = true, isTransposedA = false, isTransposedB = false;
  bool hasRegistersA = false;
  uint64_t a = 0, b = 0;  ///< descriptors
  bool operator==(const WgmmaInstruction &) const = default;
};

class WgmmaQueue {
public:
  WgmmaQueue(Fibers &fibers, SharedMemory &shared) : fibers(fibers), shared(shared) {}
  void reset(DoneAtOnce atOnce);
  /// Registers are ordered behind what the thread did to them.
  void fence() { own().isFenced = true; }
  /// accumulators: n / 2 floats of the thread; registersA: four words, or nullptr.
  void issue(const WgmmaInstruction &product, float *accumulators, const uint32_t *registersA);
  void commit();
  void wait(int64_t pending, const SourceLine &at);
  /// Runs one instruction that threads wait for. False if there is none.
  bool completeOne();
  void endThread(int thread);
  std::string describe(uint32_t warpgroup) const;

private:
  static constexpr int warpgroup = 128, rows = 64;
  using Tile = std::vector<float>;  ///< row by row
  struct Instruction {
    WgmmaInstruction product;
    std::shared_ptr<Tile> accumulators = {};
    std::array<std::array<uint32_t, 4>, warpgroup> registersA{};
    int issued = 0;  ///< threads
  };
  struct Warpgroup {
    std::deque<Instruction> instructions;        ///< that some thread has not waited for
    uint64_t first = 0, done = 0, required = 0;  ///< numbers of instructions
  };
  /// Accumulators of a thread that instructions up to `last` change.
  struct InFlight {
    float *start;
    int count;
    uint64_t last;
    std::shared_ptr<Tile> tile;
  };
  struct Thread {
    uint64_t issued = 0;
    std::deque<uint64_t> groups;  ///< instructions that were issued when each was committed
    std::vector<InFlight> inFlight;
    bool isFenced = false;
  };

  Thread &own() { return threads[size_t(fibers.runningThread())]; }
  void hold(Thread &thread, const WgmmaInstruction &product, Instruction &instruction,
            float *accumulators);
  bool runNext(Warpgroup &of);
  void run(Instruction &instruction);
  void deliver(Thread &thread, uint64_t end);

  Fibers &fibers;
  SharedMemory &shared;
  bool atOnce = false;
  std::vector<Thread> threads;
  std::vector<Warpgroup> warpgroups;
};

}  // namespace weft::emulate
