// Timing a plan on a GPU: an entry point as a whole, and each of its kernels by itself.
//
// Calls of the whole stand in a row inside one graph, as layers of a model do. Between two calls on
// the same memory others run on their own copies of everything (parameters too), so that a cold
// call finds neither inputs nor parameters in the L2 cache, but its kernels what earlier kernels of
// the same call left there.
//
// Invariant: a kernel is timed on the values that it gets in a run of the whole on random inputs,
// not on zeros, which draw less power.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/measure/Measure.h"

#include <map>
#include <memory>

namespace weft::runtime {

/// An artifact loaded for timing, with sets of operands for every kernel.
class TimedPlan {
public:
  /// `entry`: empty for all entry points, one after the other. `only`: the name of one kernel;
  /// empty for all and the whole. `lengths`: what --lengths says (Lengths.h). Throws
  /// Error(badInput) for unknown names, and what Executor throws.
  TimedPlan(Artifact artifact, const std::string &folder, const cuda::Context &context,
            const std::string &entry, const std::string &only, uint64_t seed,
            const std::string &lengths = "");

  /// Runs the entry point once and takes copies of each kernel's operands and of the whole, as many
  /// sets as cold calls need; what would not fit into `mostBytes` with them gets one.
  void prepare(L2State l2, int64_t mostBytes);
  /// The whole entry point, unless one kernel was asked for, then its kernels in the plan's order,
  /// views left out.
  std::vector<Subject> subjects();
  /// The same of the whole alone.
  void prepareWhole(L2State l2, int64_t mostBytes);
  Subject whole();

  const Plan &plan() const { return executor.plan(); }
  const std::string &folder() const { return name; }
  const std::string &entryName() const { return entry.name; }
  bool hasWhole() const { return onlyKernel < 0; }
  /// Numbers of the timed kernels, in the order of their subjects.
  const std::vector<int> &kernels() const { return timed; }

private:
  /// Own copies of a kernel's operands: one list of buffer addresses a set, indexed as Bindings
  /// are.
  struct Operands {
    cuda::Buffer memory;
    std::vector<std::vector<cuda::DevicePointer>> sets;
    int64_t bytesPerSet = 0;
  };
  std::unique_ptr<Executor> load() const;
  void launch(Executor &one, cuda::StreamHandle *on) const;
  void launchBefore(Executor &one) const;
  void copyWhole(int sets);
  Operands copyOperands(int kernel, int sets);
  int64_t operandBytes(int kernel) const;
  int64_t alignedOperandBytes(int kernel) const;  ///< each operand at a multiple of the alignment
  std::vector<int> buffersOf(int kernel) const;

  const std::string name;
  const cuda::Context &context;
  const Artifact artifact;
  const uint64_t seed;
  const std::string lengths;
  const std::unique_ptr<Executor> own;
  Executor &executor;
  const EntryPoint &entry;
  int onlyKernel = -1;
  std::vector<int> timed;
  std::map<int, Operands> operands;
  std::vector<std::unique_ptr<Executor>> copies;  ///< of the whole, beside `executor`
  cuda::Stream stream;
};

}  // namespace weft::runtime
