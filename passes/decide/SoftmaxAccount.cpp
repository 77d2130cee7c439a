// By what kernels read and write; see SoftmaxAccount.h.
#include "passes/decide/SoftmaxAccount.h"

#include "kernel/Attributes.h"
#include "plan/PlanFigures.h"

#include <algorithm>
#include <set>
#include <string>

namespace weft::decision {
namespace {

bool holds(const Kernel &kernel, OpKind kind) {
  return std::ranges::count(kernel.body, kind, &BodyOp::kind) > 0;
}

}  // namespace

SoftmaxAccount softmaxAccount(const PlannedKernels &planned, const AttentionShape &shape) {
  const Plan &plan = planned.plan;
  const int64_t scores = shape.heads * shape.queries * shape.keys,
                ofChunk = scores / std::max(1, chunkCount(plan));
  // Queries, keys and values may have as many elements, and so may the output.
  std::set<std::string> others{shape.output, shape.packed}, statistics;
  for (const PlanTensor &tensor : plan.tensors)
    if (tensor.role == TensorRole::argument || tensor.role == TensorRole::parameter)
      others.insert(tensor.logical);
  const auto tensorsOf = [&](size_t index, const auto &visit) {
    const PlanKernel &kernel = plan.kernels[index];
    const Kernel &body = planned.kernels[index].kernel;
    for (size_t at = 0; at < kernel.inputs.size(); ++at)
      visit(plan.tensors[size_t(kernel.inputs[at])].logical, body, body.inputs[at]);
    for (size_t at = 0; at < kernel.outputs.size(); ++at)
      visit(plan.tensors[size_t(kernel.outputs[at])].logical, body, body.outputs[at]);
  };
  for (size_t index = 0; index < plan.kernels.size(); ++index)
    if (holds(planned.kernels[index].kernel, OpKind::unpack))
      for (const int output : plan.kernels[index].outputs)
        if (planned.kernels[index].kernel.operatorClass() == OperatorClass::movement)
          others.insert(plan.tensors[size_t(output)].logical);
  for (size_t index = 0; index < plan.kernels.size(); ++index)
    if (holds(planned.kernels[index].kernel, OpKind::reduceSubvectors))
      tensorsOf(index, [&](const std::string &logical, const Kernel &, int) {
        statistics.insert(logical);
      });

  SoftmaxAccount account;
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    if (plan.kernels[index].family.isView()) continue;
    tensorsOf(index, [&](const std::string &logical, const Kernel &kernel, ValueId value) {
      const int64_t elements = kernel.elements(value);
      if (statistics.contains(logical)) account.statisticsBytes += kernel.bytes(value);
      else if (!others.contains(logical) && 2 * elements > ofChunk && elements <= scores)
        account.sweeps += double(elements) / double(scores);
    });
    const Kernel &kernel = planned.kernels[index].kernel;
    for (const BodyOp &op : kernel.body)
      if (op.kind == OpKind::localSoftmax) account.subVector = attributeOf(op, attribute::tile);
    if (holds(kernel, OpKind::contract)) continue;
    const double seconds = plan.kernels[index].seconds;
    if (holds(kernel, OpKind::localSoftmax)) account.localSeconds += seconds;
    else if (holds(kernel, OpKind::reduceSubvectors)) account.reductionSeconds += seconds;
    else if (holds(kernel, OpKind::globalScaling)) account.scalingSeconds += seconds;
  }
  account.statisticsShare =
      double(account.statisticsBytes) / double(2 * scores * sizeOf(shape.dtype));
  return account;
}

}  // namespace weft::decision
