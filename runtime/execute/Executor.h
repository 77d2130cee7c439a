// Runs an artifact on a GPU, without MLIR: its modules and one workspace, entry points as CUDA
// graphs, or kernel by kernel.
//
// Invariant: launch() of an entry point with pointers that it was launched with before neither
// allocates on the GPU nor waits. A graph's kernels run in the order of the plan, or, with
// Plan::concurrent, wait for their dependencies only. An Executor is used by one thread
// at a time. Its launches share one workspace: a stream orders them, or the caller's events.
#pragma once

#include "plan/ConcurrentLaunches.h"
#include "plan/PlanMemory.h"
#include "runtime/cuda/Watchdog.h"
#include "runtime/execute/Launchable.h"

#include <list>
#include <set>

namespace weft::runtime {

struct ExecutorOptions {
  uint64_t seed = 1, step = 0;  ///< of dropout (ir/SPEC.md, "Dropout bits")
  bool advanceStep = false;     ///< every launch of an entry point takes the next step, unless that
                                ///< continues another's
  bool ownExternals = true;   ///< allocate arguments and results too, for launches without pointers
  bool leaveUnbuilt = false;  ///< kernels without a cubin are no error: nothing launches them
  size_t graphs = 8;          ///< captured graphs kept, least recently used out first
  std::string folder = "DIR";                         ///< of the artifact, as messages print it
  std::chrono::milliseconds firstLaunchLimit{10000};  ///< of every kernel
  std::function<void(const std::string &)> onHang = exitAfterHang;  ///< ends the process or throws
};

class Executor {
public:
  /// Loads everything and allocates parameters and workspace. Throws Error(unsupported) when the
  /// GPU is of another architecture, when kernels were not built, or when memory does not suffice
  /// (saying what would).
  Executor(Artifact artifact, const cuda::Context &context, ExecutorOptions options = {});
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  const Plan &plan() const { return artifact.plan; }
  const PlanMemory &memory() const { return layout; }
  const std::vector<EntryPoint> &entryPoints() const { return entries; }
  /// "": the whole plan. Throws Error(badInput) with the nearest name.
  const EntryPoint &entryPoint(std::string_view name) const;
  /// The entry points whose results this one reads, in their order; none for the whole.
  std::vector<const EntryPoint *> entryPointsBefore(const EntryPoint &entry) const;
  int kernelIndex(std::string_view name) const;
  /// Bytes of GPU memory that this executor allocated.
  int64_t deviceBytes() const { return allocatedBytes; }
  /// What is other than the plan says: algorithms of cuBLASLt that this machine's version does not
  /// have.
  const std::vector<std::string> &warnings() const { return loadWarnings; }
  /// Whether that is so of this kernel.
  bool replaced(int index) const { return replacedGemms.contains(index); }

  /// Names of parameters as the graph has them, in the plan's order.
  std::vector<std::string> parameters() const;
  /// The first plan tensor that holds a parameter: its dtype, axes and extents.
  const PlanTensor &parameter(std::string_view name) const;
  /// Packs a parameter where the plan's kernels read it. `elements`: logical row-major, of the
  /// parameter's dtype.
  void setParameter(std::string_view name, std::span<const std::byte> elements);
  /// The same from GPU memory; waits for the copy.
  void setParameter(std::string_view name, cuda::DevicePointer elements);
  void setDropoutKey(uint64_t seed, uint64_t step);

  /// `pointers`: of the entry point's inputs, then of its outputs, each to element zero of a dense
  /// tensor in the plan's memory order, a multiple of 16. Results overlap nothing else: while a
  /// launch runs, they may hold what is temporary. The first launch of every kernel is waited for.
  void launch(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers,
              cuda::StreamHandle *stream);
  /// On the executor's own arguments and results.
  void launch(const EntryPoint &entry, cuda::StreamHandle *stream);
  /// What kernels said of the arguments of all launches since it was asked last, which are done.
  /// Throws Error(badInput) that names the argument, and the first sequence whose length is out of
  /// range, or whose row of a mask is no prefix, or the first index that its table has no row for:
  /// what it counted as lies in range, so that nothing outside a tensor was touched.
  void checkReported();
  /// One kernel on own memory, whatever that holds; nothing for a view. Its first launch is waited
  /// for.
  void launchKernel(int index, cuda::StreamHandle *stream);
  /// What launches a kernel; null for a view.
  const Launchable *launchable(int index) const { return kernels[size_t(index)].get(); }
  /// Own memory, for launches through launchable().
  Bindings ownBindings() const { return bindings(ownBuffers); }

  /// A tensor of the plan in own memory, logical row-major. Temporaries share memory: what is read
  /// is what lies there now.
  std::vector<std::byte> read(int tensor) const;
  void write(int tensor, std::span<const std::byte> elements);
  /// Fills the workspace and own results with 0xff: NaN in every floating type. Returns when done.
  void poison();

private:
  struct CapturedGraph {
    std::vector<cuda::DevicePointer> key;  ///< entry point, then pointers
    cuda::Graph graph;
  };

  Bindings bindings(std::span<const cuda::DevicePointer> bound) const {
    return {.buffers = bound,
            .dropoutKey = dropoutKey.address(),
            .status = status.address(),
            .libraryWorkspace = libraryWorkspace.address()};
  }
  void checkArchitecture() const;
  void clearReported();
  void loadKernels();
  void allocate();
  void allocateBuffers();
  /// Where the temporaries that lie in results are, given where the results are.
  void placeInResults(std::vector<cuda::DevicePointer> &addresses) const;
  const cuda::Module &moduleOf(const PlanKernel &kernel);
  PreparedGemm prepare(const PlanKernel &kernel);
  bool fitsPlan(const PlanKernel &kernel, const PreparedGemm &gemm) const;
  void watch(int kernel, const Bindings &bound, cuda::StreamHandle *stream);
  std::vector<cuda::DevicePointer> bind(const EntryPoint &entry,
                                        std::span<const cuda::DevicePointer> pointers) const;
  /// Within an NVTX range of the kernel's name.
  void enqueueNamed(int kernel, const Bindings &bound, cuda::StreamHandle *stream) const;
  void enqueue(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers, bool watched,
               cuda::StreamHandle *stream);
  void enqueueInOrder(const EntryPoint &entry, const Bindings &bound, bool watched,
                      cuda::StreamHandle *stream);
  void enqueueConcurrent(const EntryPoint &entry, const Bindings &bound,
                         cuda::StreamHandle *stream) const;
  void moveStaged(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers, bool in,
                  cuda::StreamHandle *stream) const;
  const cuda::Graph *findGraph(size_t entry, std::span<const cuda::DevicePointer> pointers);
  void captureGraph(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers);
  void checkCall(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers) const;
  void takeStep(const EntryPoint &entry, cuda::StreamHandle *stream);
  cuda::DevicePointer ownPointer(int tensor) const;

  const Artifact artifact;
  const cuda::Context &context;
  const ExecutorOptions options;
  const PlanMemory layout;
  const std::vector<EntryPoint> entries;
  int64_t allocatedBytes = 0;
  uint64_t nextStep = 0;
  std::set<int> reported;  ///< tensors of which some kernel says whether they are in range
  bool usesDropout = false;
  cuda::Buffer workspace, dropoutKey, status, libraryWorkspace;
  std::optional<CublasLt> library;
  int64_t libraryWorkspaceBytes =
      0;  ///< what algorithms of this machine need beyond the plan's buffers
  std::vector<std::string> loadWarnings;
  std::set<int> replacedGemms;        ///< kernels whose algorithm is another one than the plan's
  std::vector<cuda::Buffer> buffers;  ///< by buffer number; empty for temporaries and the caller's
  std::vector<cuda::DevicePointer>
      ownBuffers;  ///< by buffer number; 0 where only callers bring memory
  std::map<std::string, cuda::Module> modules;  ///< by kernel
  std::vector<std::unique_ptr<Launchable>> kernels;
  std::vector<int> libraryWorkspaceUsers;  ///< kernels that work in libraryWorkspace
  std::set<int> watched;                   ///< kernels whose first launch came back
  std::set<std::string> missingParameters;
  std::list<CapturedGraph> graphs;  ///< the last used first
  cuda::Stream captureStream;
};

}  // namespace weft::runtime
