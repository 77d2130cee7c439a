// The buffers of one kernel as host memory between margins; several tensors may lie in one (views).
#include "runtime/verify/KernelVerification.h"

#include "kernel/ArgumentStatus.h"
#include "runtime/verify/KernelInputs.h"

#include <algorithm>
#include <map>

namespace weft::runtime {
namespace {

struct HostBuffer {
  std::vector<std::byte> bytes;
  cuda::Buffer device;
};

class KernelMemory {
public:
  KernelMemory(const Plan &plan, const PlanKernel &kernel) : plan(plan), kernel(kernel) {
    for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
      for (int tensor : *tensors) cover(plan.tensors[size_t(tensor)]);
    if (kernel.workspaceBytes > 0)
      buffers[kernel.workspaceBuffer].bytes.resize(
          size_t(kernel.workspaceBytes + 2 * TensorImage::margin), TensorImage::poison);
  }

  TensorImage imageOf(int tensor) const {
    const PlanTensor &one = plan.tensors[size_t(tensor)];
    return {one.dtype, one.extents, one.strides};
  }
  /// Element zero and all behind it.
  std::span<std::byte> memoryOf(int tensor) {
    const PlanTensor &one = plan.tensors[size_t(tensor)];
    return std::span(buffers.at(one.buffer).bytes).subspan(size_t(firstByte(one)));
  }
  void upload() {
    for (auto &[number, buffer] : buffers) {
      buffer.device = cuda::Buffer(int64_t(buffer.bytes.size()));
      cuda::upload(buffer.device.address(), buffer.bytes);
    }
  }
  /// Of all buffers of the plan: those of the kernel are these, the others (a library's workspace)
  /// as they were.
  std::vector<cuda::DevicePointer> addresses(std::span<const cuda::DevicePointer> others) const {
    std::vector<cuda::DevicePointer> result(others.begin(), others.end());
    for (const auto &[number, buffer] : buffers) {
      result[size_t(number)] = buffer.device.address() + TensorImage::margin;
    }
    return result;
  }
  /// Downloads; the images of outputs take their elements. What lies in the workspace is not
  /// compared. Returns what was written beside them.
  std::string download(std::vector<TensorImage> &outputs) {
    std::map<int, std::vector<std::byte>> before;
    for (auto &[number, buffer] : buffers) {
      before[number] = buffer.bytes;
      cuda::download(buffer.bytes, buffer.device.address());
    }
    for (size_t n = 0; n < outputs.size(); ++n) {
      const PlanTensor &one = plan.tensors[size_t(kernel.outputs[n])];
      outputs[n].copyFrom(memoryOf(kernel.outputs[n]));
      outputs[n].copyTo(std::span(before[one.buffer]).subspan(size_t(firstByte(one))));
    }
    if (kernel.workspaceBytes > 0)
      std::ranges::copy(workspaceOf(buffers.at(kernel.workspaceBuffer).bytes),
                        workspaceOf(before.at(kernel.workspaceBuffer)).begin());
    for (const auto &[number, bytes] : before)
      if (bytes != buffers.at(number).bytes)
        return kernel.workspaceBytes > 0 ? "writes outside its outputs and workspace"
                                         : "writes outside its outputs";
    return {};
  }

private:
  std::span<std::byte> workspaceOf(std::vector<std::byte> &buffer) const {
    return std::span(buffer).subspan(TensorImage::margin, size_t(kernel.workspaceBytes));
  }
  static int64_t firstByte(const PlanTensor &tensor) {
    return TensorImage::margin + tensor.offset * sizeOf(tensor.dtype);
  }
  void cover(const PlanTensor &tensor) {
    int64_t last = 0;
    for (size_t d = 0; d < tensor.extents.size(); ++d)
      last += (tensor.extents[d] - 1) * tensor.strides[d];
    const int64_t end = firstByte(tensor) + (last + 1) * sizeOf(tensor.dtype) + TensorImage::margin;
    std::vector<std::byte> &bytes = buffers[tensor.buffer].bytes;
    if (int64_t(bytes.size()) < end) bytes.resize(size_t(end), TensorImage::poison);
  }

  const Plan &plan;
  const PlanKernel &kernel;
  std::map<int, HostBuffer> buffers;
};

}  // namespace

std::optional<CheckResult> verifyKernel(const Executor &executor, int index, const Kernel &kernel,
                                        const CheckOptions &options, const cuda::Stream &stream) {
  const PlanKernel &entry = executor.plan().kernels[size_t(index)];
  const Launchable *launchable = executor.launchable(index);
  if (!launchable) return std::nullopt;
  KernelMemory memory(executor.plan(), entry);
  std::vector<TensorImage> inputs, outputs;
  const std::vector<InputRule> rules = inputRules(kernel);
  for (size_t n = 0; n < entry.inputs.size(); ++n) {
    inputs.push_back(memory.imageOf(entry.inputs[n]));
    fillInput(inputs[n], rules[n], options.seed, n, options.threads);
    inputs[n].copyTo(memory.memoryOf(entry.inputs[n]));
  }
  // Two operands may be one tensor, or views that overlap: what lies in memory last is what the
  // kernel reads.
  for (size_t n = 0; n < entry.inputs.size(); ++n)
    inputs[n].copyFrom(memory.memoryOf(entry.inputs[n]));
  for (int tensor : entry.outputs) outputs.push_back(memory.imageOf(tensor));
  const uint64_t dropout[] = {options.dropout.seed, options.dropout.step};
  const cuda::Buffer key(sizeof dropout);
  cuda::upload(key.address(), std::as_bytes(std::span(dropout)));
  const cuda::Buffer status(int64_t(executor.plan().tensors.size() * sizeof(noElement)));
  memory.upload();
  const Bindings own = executor.ownBindings();
  const std::vector<cuda::DevicePointer> addresses = memory.addresses(own.buffers);
  launchable->enqueue({.buffers = addresses,
                       .dropoutKey = key.address(),
                       .status = status.address(),
                       .libraryWorkspace = own.libraryWorkspace},
                      stream.handle());
  stream.synchronize();
  const std::string problem = memory.download(outputs);
  CheckResult result = checkOutputs(kernel, inputs, outputs, options);
  if (result.problem.empty()) result.problem = problem;
  return result;
}

}  // namespace weft::runtime
