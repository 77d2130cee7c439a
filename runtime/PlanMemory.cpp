// Sizes and kinds of a plan's buffers; see PlanMemory.h.
#include "runtime/PlanMemory.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "runtime/TensorLayout.h"

#include <algorithm>

namespace weft::runtime {

namespace {

constexpr int64_t alignment = 256;  // bytes; what the driver's own allocations have

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool isExternal(const PlanTensor &tensor) { return tensor.role == "argument" || tensor.role == "result"; }

BufferKind kindOf(const PlanTensor &tensor) {
  if (tensor.role == "parameter") return BufferKind::parameter;
  return isExternal(tensor) ? BufferKind::external : BufferKind::temporary;
}

}  // namespace

PlanMemory::PlanMemory(const Plan &plan) : plan(plan), direct(plan.tensors.size(), false) {
  std::vector<int> externals;
  for (const PlanTensor &tensor : plan.tensors) {
    if (tensor.buffer < 0) throw Error::badInput("tensor '{}' of the plan has no buffer", tensor.name);
    if (size_t(tensor.buffer) >= all.size()) all.resize(size_t(tensor.buffer) + 1), externals.resize(all.size());
    PlanBuffer &buffer = all[size_t(tensor.buffer)];
    buffer.bytes = std::max(buffer.bytes, aligned(tensor.offset * elementBytes(tensor) + spanBytes(tensor)));
    buffer.kind = std::min(buffer.kind, kindOf(tensor));  // a whole joined of parameters is "temporary" itself
    externals[size_t(tensor.buffer)] += isExternal(tensor);
  }
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    const PlanBuffer &buffer = all[size_t(tensor.buffer)];
    direct[index] = isExternal(tensor) && buffer.kind == BufferKind::external && externals[size_t(tensor.buffer)] == 1 &&
                    tensor.offset == 0 && aligned(spanBytes(tensor)) == buffer.bytes;
  }
  int64_t offset = 0;
  for (PlanBuffer &buffer : all)
    if (buffer.kind == BufferKind::temporary) {
      buffer.workspaceOffset = offset;
      offset += buffer.bytes;
    }
}

int64_t PlanMemory::bytes(BufferKind kind) const {
  int64_t sum = 0;
  for (const PlanBuffer &buffer : all) sum += buffer.kind == kind ? buffer.bytes : 0;
  return sum;
}

int64_t PlanMemory::bytes() const {
  return bytes(BufferKind::parameter) + bytes(BufferKind::external) + bytes(BufferKind::temporary);
}

bool PlanMemory::touches(const std::vector<int> &kernels, int buffer) const {
  return std::ranges::any_of(kernels, [&](int kernel) {
    const PlanKernel &one = plan.kernels[size_t(kernel)];
    const auto inBuffer = [&](int tensor) { return plan.tensors[size_t(tensor)].buffer == buffer; };
    return std::ranges::any_of(one.inputs, inBuffer) || std::ranges::any_of(one.outputs, inBuffer);
  });
}

std::vector<EntryPoint> PlanMemory::entryPoints() const {
  std::vector<EntryPoint> result;
  for (const auto &[name, kernels] : plan.entryPoints) {
    EntryPoint entry{.name = name, .kernels = kernels, .inputs = {}, .outputs = {}};
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      if (!isExternal(tensor) || !touches(kernels, tensor.buffer)) continue;
      (tensor.role == "argument" ? entry.inputs : entry.outputs).push_back(int(index));
    }
    result.push_back(std::move(entry));
  }
  return result;
}

std::string memoryRefusal(const Plan &plan, const PlanMemory &memory, int64_t free, int64_t total) {
  const int64_t fixed = memory.bytes(BufferKind::parameter);
  std::string text = fmt::format("out of GPU memory: {} needs {} ({} workspace, {} arguments and results, {} parameters), "
                                 "{} of {} are free",
                                 plan.model, formatBytes(memory.bytes()), formatBytes(memory.bytes(BufferKind::temporary)),
                                 formatBytes(memory.bytes(BufferKind::external)), formatBytes(fixed), formatBytes(free), formatBytes(total));
  const auto batch = plan.dims.find("b");
  if (fixed >= free) return text + "; the parameters alone do not fit: compile fewer layers, or free GPU memory";
  if (batch == plan.dims.end() || batch->second <= 1) return text + "; free GPU memory, or compile a shorter sequence";
  // All but the parameters grows with the batch.
  const int64_t fitting = int64_t(double(batch->second) * double(free - fixed) / double(memory.bytes() - fixed));
  if (fitting < 1) return text + "; not even --dim b=1 fits: compile a shorter sequence";
  return text + fmt::format("; --dim b={} would fit", std::min(fitting, batch->second - 1));
}

}  // namespace weft::runtime
