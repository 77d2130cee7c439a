// How much memory a plan needs and where: which of its buffers hold parameters, which a caller may bring, which are the workspace.
//
// Invariant: every buffer of a plan is of one kind; temporaries lie in one workspace, each at a multiple of 256 bytes.
#pragma once

#include "runtime/Artifact.h"

namespace weft::runtime {

enum class BufferKind { parameter, external, temporary };

struct PlanBuffer {
  BufferKind kind = BufferKind::temporary;
  int64_t bytes = 0;            ///< of the tensors that lie in it, rounded up to 256
  int64_t workspaceOffset = 0;  ///< of temporaries
};

/// What can be called: its kernels, and the tensors that a caller gives and gets, in the plan's order.
struct EntryPoint {
  std::string name;
  std::vector<int> kernels, inputs, outputs;
};

class PlanMemory {
public:
  explicit PlanMemory(const Plan &plan);

  const std::vector<PlanBuffer> &buffers() const { return all; }
  int64_t bytes(BufferKind kind) const;
  int64_t bytes() const;
  /// Whether the tensor is what a caller may bring memory for: an argument or result that is alone in its buffer.
  bool isDirect(int tensor) const { return direct[size_t(tensor)]; }
  std::vector<EntryPoint> entryPoints() const;

private:
  bool touches(const std::vector<int> &kernels, int buffer) const;
  const Plan &plan;
  std::vector<PlanBuffer> all;
  std::vector<bool> direct;
};

/// Why a plan does not fit into `free` bytes: what it needs for what, and what would fit.
std::string memoryRefusal(const Plan &plan, const PlanMemory &memory, int64_t free, int64_t total);

}  // namespace weft::runtime
