// Kernels of cubins as launchables: parameters in the plan's order, pointers to element zero.
#include "runtime/execute/Launchable.h"

#include "kernel/ArgumentStatus.h"
#include "kernel/Error.h"
#include "plan/TensorLayout.h"
#include "runtime/cuda/TensorMaps.h"

namespace weft::runtime {

namespace {

constexpr int64_t alwaysAllowedSharedBytes = 48 * 1024;

class CubinKernel : public Launchable {
public:
  CubinKernel(const Plan &plan, const PlanKernel &kernel, const cuda::Module &module)
      : plan(plan),
        parameters(kernel.parameters),
        workspaceBuffer(kernel.workspaceBuffer),
        function(module.function(kernel.entry)),
        shape{.grid = kernel.grid,
              .block = kernel.block,
              .sharedBytes = kernel.sharedBytes,
              .startsEarly = kernel.startsEarly} {
    if (shape.sharedBytes > alwaysAllowedSharedBytes)
      cuda::allowSharedMemory(function, shape.sharedBytes);
  }

  void enqueue(const Bindings &bindings, cuda::StreamHandle *stream) const override {
    cuda::ArgumentList arguments;
    for (const PlanParameter &parameter : parameters) pass(parameter, bindings, arguments);
    cuda::LaunchShape own = shape;
    own.startsEarly = shape.startsEarly && bindings.isBehindEarly;
    cuda::launch(function, own, arguments.span(), stream);
  }

private:
  void pass(const PlanParameter &parameter, const Bindings &bindings,
            cuda::ArgumentList &arguments) const {
    if (parameter.kind == ParameterKind::dropoutKey)
      return arguments.passPointer(bindings.dropoutKey);
    if (parameter.kind == ParameterKind::status)
      return arguments.passPointer(bindings.status + size_t(parameter.tensor) * sizeof(noElement));
    if (parameter.kind == ParameterKind::workspace)
      return arguments.passPointer(bindings.buffers[size_t(workspaceBuffer)]);
    if (isNumber(parameter.kind)) return arguments.passNumber(uint32_t(parameter.value));
    const cuda::DevicePointer address = bindings.addressOf(plan.tensors[size_t(parameter.tensor)]);
    if (parameter.map) arguments.passMap(*parameter.map, address);
    else arguments.passPointer(address);
  }

  const Plan &plan;
  const std::vector<PlanParameter> &parameters;
  const int workspaceBuffer;  ///< -1: none, and no parameter takes it
  cuda::FunctionHandle *function;
  cuda::LaunchShape shape;
};

class LibraryKernel : public Launchable {
public:
  LibraryKernel(const Plan &plan, const PlanKernel &kernel, PreparedGemm gemm, bool isPlanned)
      : plan(plan),
        operands(*kernel.library),
        workspaceBuffer(isPlanned ? kernel.workspaceBuffer : -1),
        gemm(std::move(gemm)) {}

  void enqueue(const Bindings &bindings, cuda::StreamHandle *stream) const override {
    const auto address = [&](int tensor) {
      return tensor < 0 ? 0 : bindings.addressOf(plan.tensors[size_t(tensor)]);
    };
    const cuda::DevicePointer workspace =
        workspaceBuffer < 0 ? bindings.libraryWorkspace : bindings.buffers[size_t(workspaceBuffer)];
    GemmTensors tensors{
        .a = address(operands.a), .b = address(operands.b), .result = address(operands.c)};
    if (const auto &epilogue = operands.epilogue) {
      tensors.residual = address(epilogue->residual);
      tensors.auxiliary = address(epilogue->auxiliary);
      tensors.vector = address(epilogue->bias >= 0 ? epilogue->bias : epilogue->gradient);
    }
    gemm.enqueue(tensors, workspace, stream);
  }

private:
  const Plan &plan;
  const PlanLibraryGemm &operands;
  const int workspaceBuffer;  ///< -1: not in the plan
  const PreparedGemm gemm;
};

}  // namespace

cuda::DevicePointer Bindings::addressOf(const PlanTensor &tensor) const {
  return buffers[size_t(tensor.buffer)] + cuda::DevicePointer(tensor.offset * elementBytes(tensor));
}

std::unique_ptr<Launchable> cubinKernel(const Plan &plan, const PlanKernel &kernel,
                                        const cuda::Module &module) {
  return std::make_unique<CubinKernel>(plan, kernel, module);
}

std::unique_ptr<Launchable> libraryKernel(const Plan &plan, const PlanKernel &kernel,
                                          PreparedGemm gemm, bool isPlanned) {
  return std::make_unique<LibraryKernel>(plan, kernel, std::move(gemm), isPlanned);
}

}  // namespace weft::runtime
