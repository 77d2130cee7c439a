// What benchmarks of several kernels share: parts of a kernel as separate kernels, texts of
// several configurations, tensors by name, and all contenders timed in turn.
#pragma once

#include "bench/contractions/TimedGraph.h"
#include "codegen/Emit.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "runtime/build/Build.h"
#include "runtime/cuda/CublasLt.h"

#include <array>
#include <deque>
#include <map>
#include <memory>

namespace weft::bench {

/// A part of a kernel as a separate one: ops [first, end), values that they read from outside as
/// inputs.
Kernel partOf(const Kernel &whole, size_t first, size_t end, const std::vector<ValueId> &outputs);

struct TimedKernel {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
  runtime::BuildResult built = {};
  double seconds = 0;
};

/// Of one family of ours, best first by the model, all tensors row-major; what warps multiply as an
/// A100 is offered it.
std::vector<TimedKernel> contendersOf(const Kernel &kernel, const Family &family, size_t most);
/// Of these configurations, best first by the model.
std::vector<TimedKernel> contendersOf(const Kernel &kernel, const std::vector<Configuration> &all,
                                      size_t most);
/// Compiles all of them.
void build(const std::vector<TimedKernel *> &contenders);
const TimedKernel &fastest(const std::vector<TimedKernel> &side);

/// Every tensor of a kernel and of those that are timed beside it, by name, in several sets; all
/// elements of 16 bits about one half.
class Tensors {
public:
  static constexpr int usualSets = 3;

  explicit Tensors(const Kernel &kernel, int sets = usualSets);
  /// Those of another kernel that are not there yet.
  void add(const Kernel &kernel);
  runtime::cuda::DevicePointer at(const std::string &name, int set) const {
    return buffers.at(name)[size_t(set)].address();
  }
  /// startsEarly: where its text waits for the kernel before it.
  Enqueue enqueueOf(const TimedKernel &one, bool startsEarly = false);
  int sets() const { return count; }

private:
  const int count;
  std::map<std::string, std::vector<runtime::cuda::Buffer>> buffers;
  runtime::cuda::Buffer key;
  std::deque<runtime::cuda::Module> modules;
};

struct Row {
  double *seconds;
  Enqueue enqueue;
};

/// The median of each row over the rounds, in turn, around the sets of operands.
void interleave(std::vector<Row> &rows, int rounds, const runtime::cuda::Stream &stream,
                int sets = Tensors::usualSets);

/// Candidates of cuBLASLt for one GEMM, as rows to be timed.
class LibraryRows {
public:
  /// `values`: A, B, the result, the residual, the auxiliary tensor and the vector, or null.
  LibraryRows(const LibraryGemm &gemm, const runtime::CublasLt &library, const Tensors &tensors,
              std::array<const Value *, 6> values, runtime::cuda::DevicePointer workspace);
  double fastest() const;

  std::vector<Row> rows;

private:
  std::vector<LibraryKnobs> candidates;
  std::vector<double> seconds;
  std::deque<runtime::PreparedGemm> prepared;
};

/// cuBLASLt's GEMM with a separate epilogue for these layouts, in which GELU is an
/// approximation; null if it has none.
std::unique_ptr<LibraryRows> libraryEpilogueRows(const Kernel &kernel, Configuration configuration,
                                                 const runtime::CublasLt &library,
                                                 const Tensors &tensors,
                                                 runtime::cuda::DevicePointer workspace);

}  // namespace weft::bench
