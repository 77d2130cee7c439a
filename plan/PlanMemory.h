// How much memory a plan needs and where: which of its buffers hold parameters, which a caller may
// bring, which are temporary and where those lie, in the workspace or in a result that is not
// written yet.
//
// Invariant: every buffer of a plan is of one kind; temporary buffers start at multiples of 256
// bytes of the memory they lie in.
#pragma once

#include "plan/Plan.h"

namespace weft {

enum class BufferKind { parameter, external, temporary };

struct PlanBuffer {
  BufferKind kind = BufferKind::temporary;
  int64_t bytes = 0;  ///< of what lies in it, rounded up to 256
  int host = -1;  ///< of temporaries: the buffer of the result that they lie in; -1: the workspace
  int64_t offset = 0;  ///< of temporaries: bytes from the start of workspace or host
};

/// Bytes of one memory: of the workspace, or of the memory of a buffer that has its own.
struct MemoryRange {
  static constexpr int workspace = -1;
  int memory = workspace;
  int64_t begin = 0, end = 0;
  bool overlaps(const MemoryRange &other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
};

/// What can be called: its kernels, and the tensors that a caller gives and gets, in the plan's
/// order.
struct EntryPoint {
  std::string name;
  std::vector<int> kernels, inputs, outputs;
  bool continues =
      false;  ///< reads what another entry point has computed, in the same step of dropout
};

/// The name of all entry points of a plan one after the other, where it has several.
constexpr const char *wholeEntryName = "all";

class PlanMemory {
public:
  /// Throws Error(badInput) naming a tensor without buffer, or the allocation that cannot be.
  explicit PlanMemory(const Plan &plan);

  const std::vector<PlanBuffer> &buffers() const { return all; }
  /// Of all buffers of the kind; of temporaries: the workspace.
  int64_t bytes(BufferKind kind) const;
  int64_t bytes() const;
  /// Whether the tensor is what a caller may bring memory for: an argument or result that is alone
  /// in its buffer, but for temporaries.
  bool isDirect(int tensor) const { return direct[size_t(tensor)]; }
  MemoryRange rangeOf(const PlanTensor &tensor) const;
  MemoryRange rangeOf(int buffer) const;
  /// In the order in which they are called; then, of several, all in one (wholeEntryName).
  std::vector<EntryPoint> entryPoints() const;

private:
  void measureBuffers();
  void findDirect();
  void place(const BufferAllocation &allocation);
  void placeOthers();
  EntryPoint entryPoint(const std::string &name, const std::vector<int> &kernels) const;
  bool reads(const std::vector<int> &kernels, int buffer) const;
  bool writes(const std::vector<int> &kernels, int buffer) const;
  const Plan &plan;
  std::vector<PlanBuffer> all;
  std::vector<bool> direct, isPlaced;
};

/// Bytes rounded up to whole units of 256, as the driver's own allocations are aligned.
int64_t alignedBytes(int64_t bytes);

/// Why a plan does not fit into `free` bytes: what it needs for what, and what would fit.
/// `libraryBytes`: what library GEMMs need on this machine beyond the plan.
std::string memoryRejection(const Plan &plan, const PlanMemory &memory, int64_t libraryBytes,
                            int64_t free, int64_t total);

}  // namespace weft
