// Roofline of a graph; see Roofline.h.
#include "passes/decide/Roofline.h"

#include "kernel/VisibleWork.h"
#include "passes/configure/CostModel.h"

#include <algorithm>

namespace weft::decision {
namespace {

/// Bytes that have to move of an argument: all, or of one that only gathers read, what they give.
int64_t bytesRead(const select::Problem &problem, int tensor,
                  const std::vector<const select::Candidate *> &alone) {
  const int64_t all = problem.tensors[size_t(tensor)].bytes();
  int64_t gathered = 0;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    if (std::ranges::count(problem.opInputs[op], tensor) == 0) continue;
    const bool gathers = alone[op] && alone[op]->kernel.body.front().kind == OpKind::gather;
    if (!gathers) return all;
    for (const int output : problem.opOutputs[op])
      gathered += problem.tensors[size_t(output)].bytes();
  }
  return std::min(all, gathered);  // what nobody reads needs not be moved
}

/// By op of the problem, of which `alone` has the kernels.
std::vector<double> visibleWork(const select::Problem &problem,
                                const std::vector<const select::Candidate *> &alone) {
  std::vector<PlacedTensor> tensors;
  for (const select::Tensor &tensor : problem.tensors)
    tensors.push_back({.extents = tensor.extents(), .isResult = tensor.isResult});
  std::vector<PlacedOp> ops;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    const Kernel *const kernel = alone[op] ? &alone[op]->kernel : nullptr;
    const BodyOp *const body = kernel && kernel->body.size() == 1 ? &kernel->body.front() : nullptr;
    ops.push_back({.kernel = kernel,
                   .body = body,
                   .inputs = problem.opInputs[op],
                   .outputs = problem.opOutputs[op]});
  }
  return visibleShares(ops, tensors).ops;
}

/// Of the work of a kernel that is one op, what is expected.
double expectedShare(const Kernel &kernel, const ExpectedFill &fill, const TokensOfGraph &tokens) {
  const auto has = [&](const std::string &name) {
    return std::ranges::count(kernel.axes, name, &Axis::name) > 0;
  };
  const auto areScores = [&](const std::vector<std::string> &axes) {
    return std::ranges::all_of(axes, has);
  };
  // Padding hides keys; all queries are computed.
  if (!tokens.scores.empty())
    return std::ranges::any_of(tokens.scores, areScores) ? fill.tokens : 1;
  const bool isOfTokens =
      tokens.packed > 0 && std::ranges::count(kernel.axes, tokens.packed, &Axis::extent) > 0;
  return isOfTokens ? fill.tokens : fill.pairs;
}

}  // namespace

double copySeconds(int64_t bytes, const Device &device) {
  return double(bytes) / device.copyBandwidth;
}

double rooflineSeconds(const select::Problem &problem, const Device &device,
                       const ExpectedFill &fill, const TokensOfGraph &tokens) {
  std::vector<const select::Candidate *> alone(problem.ops.size(), nullptr);
  for (const select::Candidate &candidate : problem.candidates)
    if (candidate.ops.size() == 1) alone[size_t(candidate.ops.front())] = &candidate;
  const double ofArguments = fill.tokens;  // of keys and values that padding hides, too
  int64_t bytes = 0;
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
    if (problem.tensors[tensor].isArgument)
      bytes += int64_t(double(bytesRead(problem, int(tensor), alone)) *
                       (problem.tensors[tensor].isParameter ? 1 : ofArguments));
    if (problem.tensors[tensor].isResult) bytes += problem.tensors[tensor].bytes();
  }
  double contractions = 0, others = 0;
  const std::vector<double> visible = visibleWork(problem, alone);
  for (size_t op = 0; op < alone.size(); ++op)
    if (const select::Candidate *const candidate = alone[op])
      (candidate->kernel.operatorClass() == OperatorClass::contraction ? contractions : others) +=
          visible[op] * candidate->kernel.flop() / peakFlops(candidate->kernel, device) *
          expectedShare(candidate->kernel, fill, tokens);
  return std::max({copySeconds(bytes, device), contractions, others});
}

}  // namespace weft::decision
