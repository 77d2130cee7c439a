// Sizes, kinds and places of a plan's buffers; see PlanMemory.h.
#include "plan/PlanMemory.h"

#include "kernel/AxisRole.h"
#include "kernel/Configuration.h"
#include "kernel/Error.h"
#include "kernel/Format.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <set>

namespace weft {

namespace {

constexpr int64_t alignment = 256;  // bytes; what the driver's own allocations have

bool isExternal(const PlanTensor &tensor) {
  return tensor.role == TensorRole::argument || tensor.role == TensorRole::result;
}

BufferKind kindOf(const PlanTensor &tensor) {
  if (tensor.role == TensorRole::parameter) return BufferKind::parameter;
  return isExternal(tensor) ? BufferKind::external : BufferKind::temporary;
}

int64_t endOf(const PlanTensor &tensor) {
  return tensor.offset * elementBytes(tensor) + spanBytes(tensor);
}

int64_t libraryBytesOf(const PlanKernel &kernel) {
  return kernel.family.isLibrary() ? workspaceBytesOf(kernel) : 0;
}

}  // namespace

int64_t workspaceBytesOf(const PlanKernel &kernel) {
  return kernel.family.isLibrary() ? libraryKnobs(kernel).workspaceBytes : kernel.workspaceBytes;
}

int64_t alignedBytes(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

PlanMemory::PlanMemory(const Plan &plan) : plan(plan), direct(plan.tensors.size(), false) {
  measureBuffers();
  findDirect();
  isPlaced.resize(all.size());
  for (size_t index = 0; index < plan.memoryPlan.size(); ++index) {
    try {
      place(plan.memoryPlan[index]);
    } catch (const Error &error) {
      throw Error(error.kind, fmt::format("memoryPlan[{}]: {}", index, error.what()));
    }
  }
  placeOthers();
}

void PlanMemory::measureBuffers() {
  const auto cover = [&](int buffer, int64_t bytes, BufferKind kind) {
    if (size_t(buffer) >= all.size()) all.resize(size_t(buffer) + 1);
    PlanBuffer &one = all[size_t(buffer)];
    one.bytes = std::max(one.bytes, alignedBytes(bytes));
    one.kind = std::min(one.kind, kind);  // a whole joined of parameters is "temporary" itself
  };
  for (const PlanTensor &tensor : plan.tensors) {
    if (tensor.buffer < 0)
      throw Error::badInput("tensor '{}' of the plan has no buffer", tensor.name);
    cover(tensor.buffer, endOf(tensor), kindOf(tensor));
  }
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.workspaceBuffer >= 0)
      cover(kernel.workspaceBuffer, workspaceBytesOf(kernel), BufferKind::temporary);
}

void PlanMemory::findDirect() {
  std::vector<int> externals(all.size());
  for (const PlanTensor &tensor : plan.tensors)
    externals[size_t(tensor.buffer)] += isExternal(tensor);
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    const PlanBuffer &buffer = all[size_t(tensor.buffer)];
    direct[index] = isExternal(tensor) && buffer.kind == BufferKind::external &&
                    externals[size_t(tensor.buffer)] == 1 && tensor.offset == 0 &&
                    alignedBytes(spanBytes(tensor)) == buffer.bytes;
  }
}

void PlanMemory::place(const BufferAllocation &allocation) {
  const int number = allocation.buffer;
  if (number < 0 || size_t(number) >= all.size() || all[size_t(number)].bytes == 0)
    throw Error::badInput("nothing lies in buffer {}: it has no place", number);
  PlanBuffer &buffer = all[size_t(number)];
  if (buffer.kind != BufferKind::temporary) {
    const auto isHeld = [&](const PlanTensor &tensor) {
      return tensor.buffer == number && kindOf(tensor) != BufferKind::temporary;
    };
    throw Error::badInput("buffer {} holds {} '{}': it has separate memory", number,
                          nameOf(std::ranges::find_if(plan.tensors, isHeld)->role),
                          std::ranges::find_if(plan.tensors, isHeld)->name);
  }
  if (isPlaced[size_t(number)]) throw Error::badInput("buffer {} has a place already", number);
  if (allocation.offset < 0 || allocation.offset % alignment != 0)
    throw Error::badInput("offset {} is no multiple of {} bytes", allocation.offset, alignment);
  isPlaced[size_t(number)] = true;
  buffer.offset = allocation.offset;
  if (allocation.in.isWorkspace()) return;
  if (const auto user = std::ranges::find(plan.kernels, number, &PlanKernel::workspaceBuffer);
      user != plan.kernels.end())
    throw Error::badInput(
        "buffer {} is what {} works in: it lies in the workspace, which is aligned to {} bytes",
        number, user->family.isLibrary() ? "a library" : "'" + user->name + "'", alignment);
  const auto index = size_t(allocation.in.result);
  if (index >= plan.tensors.size())
    throw Error::badInput("buffer {} lies in tensor {} of {}", number, index, plan.tensors.size());
  const PlanTensor &result = plan.tensors[index];
  if (result.role != TensorRole::result || !direct[index])
    throw Error::badInput(
        "\"{}\" is neither \"workspace\" nor a result that is alone in its buffer", result.name);
  if (allocation.offset + buffer.bytes > spanBytes(result))
    throw Error::badInput("buffer {}, {} bytes at offset {}, reaches beyond the {} bytes of '{}'",
                          number, buffer.bytes, allocation.offset, spanBytes(result), result.name);
  buffer.host = result.buffer;
}

void PlanMemory::placeOthers() {
  int64_t end = bytes(BufferKind::temporary);
  for (size_t index = 0; index < all.size(); ++index)
    if (all[index].kind == BufferKind::temporary && !isPlaced[index]) {
      isPlaced[index] = true;
      all[index].offset = end;
      end += all[index].bytes;
    }
}

int64_t PlanMemory::bytes(BufferKind kind) const {
  int64_t sum = 0;
  for (size_t index = 0; index < all.size(); ++index) {
    const PlanBuffer &buffer = all[index];
    if (buffer.kind != kind) continue;
    if (kind != BufferKind::temporary) sum += buffer.bytes;
    else if (isPlaced[index] && buffer.host < 0) sum = std::max(sum, buffer.offset + buffer.bytes);
  }
  return sum;
}

int64_t PlanMemory::bytes() const {
  return bytes(BufferKind::parameter) + bytes(BufferKind::external) + bytes(BufferKind::temporary);
}

MemoryRange PlanMemory::rangeOf(int buffer) const {
  const PlanBuffer &one = all[size_t(buffer)];
  const int memory = one.kind != BufferKind::temporary ? buffer
                     : one.host < 0                    ? MemoryRange::workspace
                                                       : one.host;
  return {.memory = memory, .begin = one.offset, .end = one.offset + one.bytes};
}

MemoryRange PlanMemory::rangeOf(const PlanTensor &tensor) const {
  MemoryRange range = rangeOf(tensor.buffer);
  range.end = range.begin + endOf(tensor);
  range.begin += tensor.offset * elementBytes(tensor);
  return range;
}

bool PlanMemory::reads(const std::vector<int> &kernels, int buffer) const {
  return std::ranges::any_of(kernels, [&](int kernel) {
    return std::ranges::any_of(plan.kernels[size_t(kernel)].inputs, [&](int tensor) {
      return rangeOf(plan.tensors[size_t(tensor)]).memory == buffer;
    });
  });
}

bool PlanMemory::writes(const std::vector<int> &kernels, int buffer) const {
  return std::ranges::any_of(kernels, [&](int kernel) {
    return std::ranges::any_of(plan.kernels[size_t(kernel)].outputs, [&](int tensor) {
      return rangeOf(plan.tensors[size_t(tensor)]).memory == buffer;
    });
  });
}

/// A result that is only read there is an input: an entry point before has computed it.
EntryPoint PlanMemory::entryPoint(const std::string &name, const std::vector<int> &kernels) const {
  EntryPoint entry{.name = name, .kernels = kernels, .inputs = {}, .outputs = {}};
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    if (!isExternal(tensor)) continue;
    const bool isWritten = writes(kernels, tensor.buffer);
    if (!isWritten && !reads(kernels, tensor.buffer)) continue;
    (tensor.role == TensorRole::result && isWritten ? entry.outputs : entry.inputs)
        .push_back(int(index));
  }
  std::set<int> known;
  for (const int kernel : kernels) {
    const PlanKernel &one = plan.kernels[size_t(kernel)];
    for (const int input : one.inputs)
      for (const PlanKernel &other : plan.kernels)
        if (!known.contains(input) && std::ranges::count(other.outputs, input) > 0)
          entry.continues = true;
    known.insert(one.outputs.begin(), one.outputs.end());
  }
  return entry;
}

std::vector<EntryPoint> PlanMemory::entryPoints() const {
  std::vector<EntryPoint> result;
  for (const auto &[kind, kernels] : plan.entryPoints)
    result.push_back(entryPoint(std::string(nameOf(kind)), kernels));
  std::ranges::stable_sort(result, {}, [](const EntryPoint &entry) {
    return entry.kernels.empty() ? 0 : entry.kernels.front();
  });
  if (result.size() < 2) return result;
  std::set<int> all;
  for (const EntryPoint &entry : result) all.insert(entry.kernels.begin(), entry.kernels.end());
  result.push_back(entryPoint(wholeEntryName, {all.begin(), all.end()}));
  return result;
}

std::string memoryRejection(const Plan &plan, const PlanMemory &memory, int64_t libraryBytes,
                            int64_t free, int64_t total) {
  int64_t planned = 0;  // what the plan's own algorithms ask for does not grow with the batch
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.workspaceBuffer >= 0)
      planned = std::max(planned, alignedBytes(libraryBytesOf(kernel)));
  const int64_t parameters = memory.bytes(BufferKind::parameter), fixed = parameters + libraryBytes;
  const int64_t growing = memory.bytes() - parameters, needed = fixed + growing;
  std::string text = fmt::format(
      "out of GPU memory: {} needs {} ({} workspace, {} arguments and results, {} parameters",
      plan.model, formatBytes(needed), formatBytes(memory.bytes(BufferKind::temporary)),
      formatBytes(memory.bytes(BufferKind::external)), formatBytes(parameters));
  if (libraryBytes > 0) text += fmt::format(", {} for cuBLASLt", formatBytes(libraryBytes));
  else if (planned > 0)
    text += fmt::format("; the workspace lends cuBLASLt up to {}", formatBytes(planned));
  text += fmt::format("), {} of {} are free", formatBytes(free), formatBytes(total));
  const auto batch = plan.dims.find(std::string(letterOf(AxisRole::batch)));
  if (fixed >= free)
    return text + "; the parameters alone do not fit: compile fewer layers, or free GPU memory";
  if (batch == plan.dims.end() || batch->second <= 1)
    return text + "; free GPU memory, or compile a shorter sequence";
  // The library's part of the workspace counts twice, as part of what grows and as part of what is
  // left: `fitting` surely fits.
  const int64_t left = free - fixed - planned;
  const int64_t fitting =
      int64_t(double(batch->second) * double(std::max<int64_t>(left, 0)) / double(growing));
  if (fitting < 1) return text + "; not even --dim b=1 fits: compile a shorter sequence";
  return text + fmt::format("; --dim b={} would fit", std::min(fitting, batch->second - 1));
}

}  // namespace weft
