// An artifact on a GPU; see Executor.h. Launching stands in ExecutorLaunch.cpp.
#include "runtime/execute/Executor.h"

#include "codegen/targets/Targets.h"
#include "kernel/ArgumentStatus.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Arguments.h"

#include <algorithm>

namespace weft::runtime {

namespace {

constexpr int64_t dropoutKeyBytes = 16;  // weft::DropoutKey: seed and step, 64 bits each

bool readsDropoutKey(const Plan &plan) {
  return std::ranges::any_of(plan.kernels, [](const PlanKernel &kernel) {
    return std::ranges::any_of(kernel.parameters, [](const PlanParameter &one) {
      return one.kind == ParameterKind::dropoutKey;
    });
  });
}

std::set<int> reportedTensors(const Plan &plan) {
  std::set<int> tensors;
  for (const PlanKernel &kernel : plan.kernels)
    for (const PlanParameter &one : kernel.parameters)
      if (one.kind == ParameterKind::status) tensors.insert(one.tensor);
  return tensors;
}

}  // namespace

Executor::Executor(Artifact given, const cuda::Context &context, ExecutorOptions chosen)
    : artifact(std::move(given)),
      context(context),
      options(std::move(chosen)),
      layout(artifact.plan),
      entries(layout.entryPoints()),
      reported(reportedTensors(artifact.plan)),
      usesDropout(readsDropoutKey(artifact.plan)) {
  checkArchitecture();
  if (!artifact.edited.empty() || std::ranges::any_of(artifact.plan.kernels, &PlanKernel::isUntold))
    loadWarnings =
        editLines(artifact);  // what runs was built from the text that `weft emit` took last
  for (const std::string &name : parameters()) missingParameters.insert(name);
  loadKernels();
  allocate();
  setDropoutKey(options.seed, options.step);
  clearReported();
}

void Executor::checkArchitecture() const {
  const cuda::GpuProperties &gpu = context.gpu();
  if (!plan().target.empty() && !codegen::runsOn(plan().target, gpu.architecture))
    throw Error::unsupported(
        "{} is built for {}, and GPU {} is {} ({}): compile with --target {}, or choose another "
        "GPU with --gpu",
        options.folder, plan().target, gpu.index, gpu.name, gpu.architecture,
        codegen::targetOf(gpu.architecture));
  const auto whyUnbuilt = std::ranges::find(plan().notes, NoteKind::build, &PlanNote::kind);
  for (const PlanKernel &kernel : plan().kernels) {
    if (!options.leaveUnbuilt && !kernel.source.empty() && kernel.cubin.empty())
      throw Error::unsupported(
          "kernel {} was not built ({}): 'weft emit {}' builds it where NVRTC is", kernel.name,
          whyUnbuilt == plan().notes.end() ? "no cubin" : whyUnbuilt->text, options.folder);
    if (kernel.sharedBytes > gpu.sharedMemoryPerBlock)
      throw Error::unsupported(
          "kernel {} asks for {} bytes of shared memory a block, and GPU {}, {}, has {}: compile "
          "with --device for it, or choose "
          "another GPU with --gpu",
          kernel.name, kernel.sharedBytes, gpu.index, gpu.name, gpu.sharedMemoryPerBlock);
  }
}

void Executor::allocate() {
  const auto [free, total] = context.memory();
  const int64_t callers = options.ownExternals ? 0 : layout.bytes(BufferKind::external);
  if (layout.bytes() - callers + libraryWorkspaceBytes > free)
    throw Error::unsupported("{}",
                             memoryRejection(plan(), layout, libraryWorkspaceBytes, free, total));
  try {
    allocateBuffers();
  } catch (const cuda::DriverError &error) {  // somebody else took it, or it lies in pieces
    if (!error.isOutOfMemory()) throw;
    throw Error::unsupported("{}", memoryRejection(plan(), layout, libraryWorkspaceBytes,
                                                   context.memory().first, total));
  }
}

void Executor::allocateBuffers() {
  const auto take = [&](int64_t bytes) {
    allocatedBytes += bytes;
    return cuda::Buffer(bytes);
  };
  workspace = take(layout.bytes(BufferKind::temporary));
  dropoutKey = take(dropoutKeyBytes);
  if (!reported.empty()) status = take(int64_t(plan().tensors.size() * sizeof(noElement)));
  libraryWorkspace = take(libraryWorkspaceBytes);
  std::vector<bool> callers(layout.buffers().size(), false);
  for (size_t tensor = 0; tensor < plan().tensors.size(); ++tensor)
    if (layout.isDirect(int(tensor)) && !options.ownExternals)
      callers[size_t(plan().tensors[tensor].buffer)] = true;
  for (size_t index = 0; index < layout.buffers().size(); ++index) {
    const PlanBuffer &buffer = layout.buffers()[index];
    const bool isTemporary = buffer.kind == BufferKind::temporary;
    buffers.push_back(isTemporary || callers[index] ? cuda::Buffer() : take(buffer.bytes));
    ownBuffers.push_back(isTemporary ? workspace.address() + cuda::DevicePointer(buffer.offset)
                                     : buffers.back().address());
  }
  placeInResults(ownBuffers);
}

void Executor::placeInResults(std::vector<cuda::DevicePointer> &addresses) const {
  for (size_t index = 0; index < addresses.size(); ++index) {
    const PlanBuffer &buffer = layout.buffers()[index];
    if (buffer.host < 0) continue;
    const cuda::DevicePointer result = addresses[size_t(buffer.host)];
    addresses[index] = result == 0 ? 0 : result + cuda::DevicePointer(buffer.offset);
  }
}

/// One a kernel, also of equal cubins: device memory that a module keeps (weft::GridPartials)
/// serves one launch at a time, and kernels that do not wait for each other may run at once.
const cuda::Module &Executor::moduleOf(const PlanKernel &kernel) {
  const auto found = modules.find(kernel.name);
  if (found != modules.end()) return found->second;
  return modules.emplace(kernel.name, cuda::Module(artifact.cubins.at(kernel.cubin))).first->second;
}

bool Executor::fitsPlan(const PlanKernel &kernel, const PreparedGemm &gemm) const {
  return kernel.workspaceBuffer >= 0 &&
         gemm.workspaceBytes() <= layout.buffers()[size_t(kernel.workspaceBuffer)].bytes;
}

/// One library for all GEMMs of the plan. An algorithm whose workspace is missing from the plan, or
/// is larger than in the plan (another library version), uses one workspace that all such GEMMs
/// share. They run one after another, also in a graph with concurrent kernels.
PreparedGemm Executor::prepare(const PlanKernel &kernel) {
  if (!library) library.emplace();
  PreparedGemm gemm =
      library->prepare(libraryGemm(*kernel.library), libraryKnobs(kernel), kernel.name);
  if (!gemm.warning().empty()) loadWarnings.push_back(gemm.warning());
  if (!fitsPlan(kernel, gemm))
    libraryWorkspaceBytes = std::max(libraryWorkspaceBytes, gemm.workspaceBytes());
  return gemm;
}

void Executor::loadKernels() {
  for (const PlanKernel &kernel : plan().kernels) {
    kernels.emplace_back();
    try {
      if (kernel.library) {
        PreparedGemm gemm = prepare(kernel);
        if (!gemm.warning().empty()) replacedGemms.insert(int(kernels.size()) - 1);
        const bool isPlanned = fitsPlan(kernel, gemm);
        if (!isPlanned && gemm.workspaceBytes() > 0)
          libraryWorkspaceUsers.push_back(int(kernels.size()) - 1);
        kernels.back() = libraryKernel(plan(), kernel, std::move(gemm), isPlanned);
      } else if (!kernel.cubin.empty())
        kernels.back() = cubinKernel(plan(), kernel, moduleOf(kernel));
    } catch (const Error &error) {
      throw Error(error.kind, fmt::format("kernel {}: {}", kernel.name, error.what()));
    }
  }
}

const EntryPoint &Executor::entryPoint(std::string_view name) const {
  std::vector<std::string> names;
  for (const EntryPoint &entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  if (name.empty() && !entries.empty()) return entries.back();
  throw Error::badInput("{} has no entry point '{}'{}", options.folder, name,
                        nearestAndKnown(name, names));
}

std::vector<const EntryPoint *> Executor::entryPointsBefore(const EntryPoint &entry) const {
  std::vector<const EntryPoint *> before;
  for (const EntryPoint &other : entries) {
    if (&other == &entry || !entry.continues) break;
    before.push_back(&other);
  }
  return before;
}

int Executor::kernelIndex(std::string_view name) const {
  std::vector<std::string> names;
  for (size_t index = 0; index < plan().kernels.size(); ++index) {
    if (plan().kernels[index].name == name) return int(index);
    names.push_back(plan().kernels[index].name);
  }
  throw Error::badInput("{} has no kernel '{}'{}", options.folder, name,
                        nearestAndKnown(name, names));
}

std::vector<std::string> Executor::parameters() const {
  std::vector<std::string> names;
  for (const PlanTensor &tensor : plan().tensors)
    if (tensor.role == TensorRole::parameter &&
        std::ranges::find(names, tensor.logical) == names.end())
      names.push_back(tensor.logical);
  return names;
}

const PlanTensor &Executor::parameter(std::string_view name) const {
  for (const PlanTensor &tensor : plan().tensors)
    if (tensor.role == TensorRole::parameter && tensor.logical == name) return tensor;
  throw Error::badInput("{} has no parameter '{}'{}", options.folder, name,
                        nearestAndKnown(name, parameters()));
}

void Executor::setParameter(std::string_view name, std::span<const std::byte> elements) {
  parameter(name);
  for (size_t index = 0; index < plan().tensors.size(); ++index)
    if (plan().tensors[index].role == TensorRole::parameter &&
        plan().tensors[index].logical == name)
      write(int(index), elements);
  missingParameters.erase(std::string(name));
}

void Executor::setParameter(std::string_view name, cuda::DevicePointer elements) {
  std::vector<std::byte> host(size_t(logicalBytes(parameter(name))));
  cuda::download(host, elements);
  setParameter(name, host);
}

void Executor::setDropoutKey(uint64_t seed, uint64_t step) {
  const std::array<uint64_t, 2> key{seed, step};
  cuda::upload(dropoutKey.address(), std::as_bytes(std::span(key)));
  nextStep = step;
}

void Executor::clearReported() {
  if (!reported.empty()) cuda::fill(status.address(), 0xff, status.bytes());
}

void Executor::checkReported() {
  if (reported.empty()) return;
  std::vector<uint64_t> words(plan().tensors.size());
  cuda::download(std::as_writable_bytes(std::span(words)), status.address());
  for (const int tensor : reported) {
    const std::optional<ReportedElement> element = reportedElement(words[size_t(tensor)]);
    if (!element) continue;
    clearReported();
    throw reportedError(plan(), tensor, *element, "after the run");
  }
}

cuda::DevicePointer Executor::ownPointer(int tensor) const {
  const PlanTensor &one = plan().tensors[size_t(tensor)];
  if (ownBuffers[size_t(one.buffer)] == 0)
    throw Error::badInput("the caller brings the memory of '{}': this executor has none for it",
                          one.name);
  return ownBindings().addressOf(one);
}

std::vector<std::byte> Executor::read(int tensor) const {
  const PlanTensor &one = plan().tensors[size_t(tensor)];
  std::vector<std::byte> memory(size_t(spanBytes(one))), logical(size_t(logicalBytes(one)));
  cuda::download(memory, ownPointer(tensor));
  if (isRowMajor(one)) return memory;
  gather(one, memory, logical);
  return logical;
}

void Executor::write(int tensor, std::span<const std::byte> elements) {
  const PlanTensor &one = plan().tensors[size_t(tensor)];
  std::vector<std::byte> memory(size_t(spanBytes(one)));
  if (spanBytes(one) != logicalBytes(one))
    cuda::download(memory, ownPointer(tensor));  // other tensors lie between
  scatter(one, elements, memory);
  cuda::upload(ownPointer(tensor), memory);
}

void Executor::poison() {
  cuda::fill(workspace.address(), 0xff, workspace.bytes());
  for (const PlanTensor &tensor : plan().tensors)
    if (tensor.role == TensorRole::result &&
        layout.buffers()[size_t(tensor.buffer)].kind == BufferKind::external &&
        buffers[size_t(tensor.buffer)].address())
      cuda::fill(buffers[size_t(tensor.buffer)].address(), 0xff,
                 buffers[size_t(tensor.buffer)].bytes());
}

}  // namespace weft::runtime
