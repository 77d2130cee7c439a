// The account of a graph as JSON; see Accounting.h.
#include "tools/driver/Accounting.h"

#include "passes/account/Operators.h"

#include <algorithm>

namespace weft::driver {
namespace {

using nlohmann::json;

/// Names of the kernels that hold an operator's ops, in the order of the ops, each once.
json kernelsOf(const Operator &one, const std::vector<AccountedKernel> &kernels) {
  json names = json::array();
  for (const int op : one.ops)
    for (const AccountedKernel &kernel : kernels) {
      const bool holds = std::find(kernel.ops.begin(), kernel.ops.end(), op) != kernel.ops.end();
      if (holds && std::find(names.begin(), names.end(), kernel.name) == names.end())
        names.push_back(kernel.name);
    }
  return names;
}

json operatorsReport(const std::vector<Operator> &operators,
                     const std::vector<AccountedKernel> &kernels) {
  json list = json::array();
  for (const Operator &one : operators)
    list.push_back({{"kind", one.kind},
                    {"results", one.results},
                    {"class", nameOf(one.operatorClass)},
                    {"flop", one.flop},
                    {"elementsRead", one.elementsRead},
                    {"elementsWritten", one.elementsWritten},
                    {"kernels", kernelsOf(one, kernels)}});
  return list;
}

json sharesReport(const std::vector<Operator> &operators) {
  const std::vector<ClassShare> shares = classShares(operators);
  double total = 0;
  for (const ClassShare &share : shares) total += share.flop;
  json list = json::array();
  for (const ClassShare &share : shares)
    list.push_back({{"class", nameOf(share.operatorClass)},
                    {"operators", share.operators},
                    {"flop", share.flop},
                    {"percentOfFlop", total > 0 ? 100 * share.flop / total : 0}});
  return list;
}

PhaseBytes afterFusion(const Dataflow &flow, const std::vector<AccountedKernel> &kernels) {
  PhaseBytes fused{.phase = "fuse", .ops = 0, .bytes = 0};
  for (const AccountedKernel &kernel : kernels) {
    const auto computes = [&](int op) {
      return flow.ops[size_t(op)].operatorClass != OperatorClass::movement;
    };
    if (!std::any_of(kernel.ops.begin(), kernel.ops.end(), computes))
      continue;  // a view, or a copy of the plan
    ++fused.ops;
    fused.bytes += int64_t(double(bytesOfKernel(flow, kernel.ops)) * kernel.share);
  }
  return fused;
}

}  // namespace

json toJson(const PhaseBytes &phase) {
  return {{"phase", phase.phase}, {"kernels", phase.ops}, {"bytes", phase.bytes}};
}

json accountReport(const Account &account, const std::vector<AccountedKernel> &kernels) {
  const std::vector<Operator> operators =
      operatorsOf(account.flow, workShares(account.flow, account.fill.tokens, account.fill.pairs));
  json phases = json::array();
  for (const PhaseBytes &phase : account.phases) phases.push_back(toJson(phase));
  phases.push_back(toJson(afterFusion(account.flow, kernels)));
  return {{"operators", operatorsReport(operators, kernels)},
          {"shares", sharesReport(operators)},
          {"phases", phases}};
}

}  // namespace weft::driver
