// Buffers and dependencies of a plan; see Buffers.h.
#include "tools/driver/Buffers.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::driver {
namespace {

constexpr int64_t bufferAlignment = 256;  // bytes, as cudaMalloc gives

struct Buffer {
  int64_t bytes = 0;
  bool temporary = false;
  bool free = false;
};

int rootOf(int tensor, const std::vector<int> &viewOf) {
  while (viewOf[size_t(tensor)] >= 0) tensor = viewOf[size_t(tensor)];
  return tensor;
}

/// The last kernel that touches each root tensor, views included.
std::vector<int> lastUses(const runtime::Plan &plan, const std::vector<int> &viewOf) {
  std::vector<int> last(plan.tensors.size(), -1);
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
    for (const auto *tensors : {&plan.kernels[kernel].inputs, &plan.kernels[kernel].outputs})
      for (const int tensor : *tensors) last[size_t(rootOf(tensor, viewOf))] = int(kernel);
  return last;
}

/// The smallest free buffer that holds `bytes`, else the largest free one, grown, else a new one.
int takeBuffer(std::vector<Buffer> &buffers, int64_t bytes) {
  int best = -1;
  for (size_t index = 0; index < buffers.size(); ++index) {
    if (!buffers[index].free) continue;
    const int64_t size = buffers[index].bytes;
    const int64_t bestSize = best < 0 ? -1 : buffers[size_t(best)].bytes;
    const bool better = size >= bytes ? bestSize < bytes || size < bestSize : size > bestSize && bestSize < bytes;
    if (best < 0 || better) best = int(index);
  }
  if (best < 0) {
    buffers.push_back({.bytes = 0, .temporary = true});
    best = int(buffers.size()) - 1;
  }
  Buffer &buffer = buffers[size_t(best)];
  buffer.free = false;
  buffer.bytes = std::max(buffer.bytes, alignedBytes(bytes));
  return best;
}

/// The buffer of an input that the kernel's first output may take: a temporary that nothing else reads now or later. Readers
/// of views count as readers of the whole.
int overwrittenBuffer(const runtime::Plan &plan, int kernel, const std::vector<int> &overwritable, const std::vector<int> &viewOf,
                      const std::vector<int> &last, const std::vector<Buffer> &buffers) {
  const std::vector<int> &inputs = plan.kernels[size_t(kernel)].inputs;
  for (const int input : overwritable) {
    const int root = rootOf(input, viewOf), buffer = plan.tensors[size_t(root)].buffer;
    const auto readers = std::count_if(inputs.begin(), inputs.end(), [&](int other) { return rootOf(other, viewOf) == root; });
    if (root == input && readers == 1 && last[size_t(input)] == kernel && buffers[size_t(buffer)].temporary) return buffer;
  }
  return -1;
}

}  // namespace

int64_t alignedBytes(int64_t bytes) { return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment; }

void assignBuffers(runtime::Plan &plan, const std::vector<int> &viewOf, const std::vector<std::vector<int>> &overwritable) {
  std::vector<Buffer> buffers;
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    runtime::PlanTensor &root = plan.tensors[size_t(rootOf(int(index), viewOf))];
    if (root.buffer >= 0 || plan.tensors[index].role == "temporary") continue;
    root.buffer = int(buffers.size());
    buffers.push_back({.bytes = root.bytes});
  }
  const std::vector<int> last = lastUses(plan, viewOf);
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    const runtime::PlanKernel &step = plan.kernels[kernel];
    int taken = -1;
    for (const int output : step.outputs) {
      const int root = rootOf(output, viewOf);
      int &buffer = plan.tensors[size_t(root)].buffer;
      if (buffer < 0 && output == step.outputs.front() && root == output)
        buffer = taken = overwrittenBuffer(plan, int(kernel), overwritable[kernel], viewOf, last, buffers);
      if (buffer < 0) buffer = takeBuffer(buffers, plan.tensors[size_t(root)].bytes);
    }
    std::set<int> touched(step.inputs.begin(), step.inputs.end());
    touched.insert(step.outputs.begin(), step.outputs.end());
    for (const int tensor : touched) {
      const int root = rootOf(tensor, viewOf);
      const int buffer = plan.tensors[size_t(root)].buffer;
      const bool isDone = last[size_t(root)] == int(kernel) && (buffer != taken || root == step.outputs.front());
      if (isDone && buffers[size_t(buffer)].temporary) buffers[size_t(buffer)].free = true;
    }
  }
  for (size_t index = 0; index < plan.tensors.size(); ++index)
    plan.tensors[index].buffer = plan.tensors[size_t(rootOf(int(index), viewOf))].buffer;
  plan.workspaceBytes = 0;
  for (const Buffer &buffer : buffers)
    if (buffer.temporary) plan.workspaceBytes += buffer.bytes;
}

void orderKernels(runtime::Plan &plan) {
  std::map<int, int> writer;              // buffer -> kernel
  std::map<int, std::set<int>> readers;   // buffer -> kernels since its last write
  std::vector<std::set<int>> reachable;   // kernel -> all kernels before it
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    runtime::PlanKernel &step = plan.kernels[kernel];
    std::set<int> before;
    const auto bufferOf = [&](int tensor) { return plan.tensors[size_t(tensor)].buffer; };
    for (const int input : step.inputs)
      if (const auto found = writer.find(bufferOf(input)); found != writer.end()) before.insert(found->second);
    for (const int output : step.outputs) {
      if (const auto found = writer.find(bufferOf(output)); found != writer.end()) before.insert(found->second);
      before.insert(readers[bufferOf(output)].begin(), readers[bufferOf(output)].end());
    }
    before.erase(int(kernel));
    std::set<int> implied;
    for (const int one : before) implied.insert(reachable[size_t(one)].begin(), reachable[size_t(one)].end());
    step.after.clear();
    for (const int one : before)
      if (!implied.contains(one)) step.after.push_back(one);
    implied.insert(before.begin(), before.end());
    reachable.push_back(std::move(implied));
    for (const int input : step.inputs) readers[bufferOf(input)].insert(int(kernel));
    for (const int output : step.outputs) {
      writer[bufferOf(output)] = int(kernel);
      readers[bufferOf(output)].clear();
    }
  }
}

}  // namespace weft::driver
