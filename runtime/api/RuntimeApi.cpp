// The C interface over Executor; see weft_runtime.h. No exception leaves it.
#include "runtime/api/weft_runtime.h"

#include "kernel/Error.h"
#include "runtime/execute/Executor.h"
#include "runtime/system/Streams.h"

#include <cstdio>
#include <map>
#include <memory>
#include <new>

using namespace weft;
using namespace weft::runtime;

struct weft_artifact {
  weft_artifact(const std::string &folder, const cuda::Context &context)
      : context(context),
        executor(readRunnable(folder), context,
                 {.ownExternals = false, .folder = folder, .onHang = [](const std::string &text) {
                    throw Error::checkFailed("{}", text);
                  }}) {
    for (const std::string &warning : executor.warnings())
      say(fmt::format("weft: warning: {}\n", warning));
    for (const std::string &name : executor.parameters())
      parameters.push_back(&executor.parameter(name));
  }
  static Artifact readRunnable(const std::string &folder) {
    Artifact artifact = readArtifact(folder);
    verifyDerived(artifact.plan, folder + "/plan.json");
    return artifact;
  }
  const cuda::Context &context;
  Executor executor;
  std::vector<const PlanTensor *> parameters;
};

namespace {

thread_local std::string lastError;

/// One context a GPU, kept to the end of the process: streams and pointers of callers live in it.
const cuda::Context &contextOf(int gpu) {
  static std::map<int, std::unique_ptr<cuda::Context>> contexts;
  std::unique_ptr<cuda::Context> &context = contexts[gpu];
  if (!context) context = std::make_unique<cuda::Context>(gpu);
  return *context;
}

template <typename Action>
int guarded(Action &&action) {
  try {
    action();
    return 0;
  } catch (...) {
    Failure failure = failureOf(std::current_exception());
    lastError = std::move(failure.message);
    return int(failure.kind);
  }
}

/// The artifact's tensors of a kind, by their place in its lists.
const PlanTensor &tensorAt(const weft_artifact &artifact, const char *entry, int kind, int index) {
  if (kind == WEFT_PARAMETER) return *artifact.parameters.at(size_t(index));
  const EntryPoint &point = artifact.executor.entryPoint(entry);
  const std::vector<int> &tensors = kind == WEFT_INPUT ? point.inputs : point.outputs;
  return artifact.executor.plan().tensors[size_t(tensors.at(size_t(index)))];
}

}  // namespace

const char *weft_last_error(void) { return lastError.c_str(); }

int weft_open(const char *folder, int gpu, weft_artifact **artifact) {
  *artifact = nullptr;
  return guarded([&] {
    const cuda::Context &context = contextOf(gpu);
    context.makeCurrent();
    *artifact = new weft_artifact(folder, context);
  });
}

void weft_close(weft_artifact *artifact) {
  if (!artifact) return;
  guarded([&] { artifact->context.makeCurrent(); });
  delete artifact;
}

int weft_tensor_count(weft_artifact *artifact, const char *entry, int kind) {
  int count = -1;
  guarded([&] {
    if (kind == WEFT_PARAMETER) {
      count = int(artifact->parameters.size());
      return;
    }
    const EntryPoint &point = artifact->executor.entryPoint(entry);
    count = int((kind == WEFT_INPUT ? point.inputs : point.outputs).size());
  });
  return count;
}

int weft_describe_tensor(weft_artifact *artifact, const char *entry, int kind, int index,
                         weft_tensor *tensor) {
  return guarded([&] {
    if (index < 0 || index >= weft_tensor_count(artifact, entry, kind))
      throw Error::badInput("there is no tensor {} of that kind", index);
    const PlanTensor &one = tensorAt(*artifact, entry, kind, index);
    *tensor = {.name = one.logical.c_str(),
               .dtype = nameOf(one.dtype).data(),
               .rank = int(one.extents.size()),
               .extents = one.extents.data(),
               .order = one.order.data()};
  });
}

int weft_set_parameter(weft_artifact *artifact, const char *name, const void *elements) {
  return guarded([&] {
    artifact->context.makeCurrent();
    artifact->executor.setParameter(name, reinterpret_cast<cuda::DevicePointer>(elements));
  });
}

int weft_set_dropout_key(weft_artifact *artifact, uint64_t seed, uint64_t step) {
  return guarded([&] {
    artifact->context.makeCurrent();
    artifact->executor.setDropoutKey(seed, step);
  });
}

int weft_launch(weft_artifact *artifact, const char *entry, void *const *pointers, int count,
                void *stream) {
  return guarded([&] {
    artifact->context.makeCurrent();
    std::vector<cuda::DevicePointer> addresses;
    for (int index = 0; index < count; ++index)
      addresses.push_back(reinterpret_cast<cuda::DevicePointer>(pointers[index]));
    artifact->executor.launch(artifact->executor.entryPoint(entry), addresses,
                              static_cast<cuda::StreamHandle *>(stream));
  });
}

int weft_check_arguments(weft_artifact *artifact) {
  return guarded([&] {
    artifact->context.makeCurrent();
    artifact->executor.checkReported();
  });
}

int weft_launch_kernel(weft_artifact *artifact, const char *kernel, const int *buffers,
                       void *const *pointers, int count, void *stream) {
  return guarded([&] {
    artifact->context.makeCurrent();
    const Executor &executor = artifact->executor;
    const int index = executor.kernelIndex(kernel);
    const Launchable *launchable = executor.launchable(index);
    if (!launchable) return;
    Bindings bindings = executor.ownBindings();
    std::vector<cuda::DevicePointer> addresses(bindings.buffers.begin(), bindings.buffers.end());
    for (int given = 0; given < count; ++given) {
      if (buffers[given] < 0 || size_t(buffers[given]) >= addresses.size())
        throw Error::badInput("kernel {}: the plan has no buffer {}; it has {}", kernel,
                              buffers[given], addresses.size());
      addresses[size_t(buffers[given])] = reinterpret_cast<cuda::DevicePointer>(pointers[given]);
    }
    const PlanKernel &one = executor.plan().kernels[size_t(index)];
    for (const std::vector<int> *tensors : {&one.inputs, &one.outputs})
      for (const int tensor : *tensors)
        if (const PlanTensor &operand = executor.plan().tensors[size_t(tensor)];
            addresses[size_t(operand.buffer)] == 0)
          throw Error::badInput("kernel {}: {} lies in buffer {}, which only callers bring", kernel,
                                operand.name, operand.buffer);
    bindings.buffers = addresses;
    launchable->enqueue(bindings, static_cast<cuda::StreamHandle *>(stream));
  });
}

int64_t weft_device_bytes(const weft_artifact *artifact) {
  return artifact->executor.deviceBytes();
}
